package api

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/trace"
)

// WhyRequest asks about connections from one end to another. With Carried it continues with a
// packet that another Node sent.
type WhyRequest struct {
	// From is namespace/pod, an address, external or node. To may also be svc:namespace/name.
	// It ends in a colon and a port: a number, or a port name of the Pod or Service. A Service
	// with one port needs none, ICMP has none. If entries have no objects, both are ADDRESS or
	// a port of the switch, with ,MAC and @PORT.
	From     string `json:"from,omitempty"`
	To       string `json:"to,omitempty"`
	Protocol string `json:"protocol,omitempty"` // tcp, udp, sctp or icmp; empty: tcp, or that of the Service's port
	IPv6     bool   `json:"ipv6,omitempty"`     // IPv6 addresses of ends that have both
	// SourcePort is the client's port; 0: 40000.
	SourcePort uint16   `json:"sourcePort,omitempty"`
	Carried    *Carried `json:"carried,omitempty"`
}

// Carried is a packet on its way from one Node to another.
type Carried struct {
	To     string        `json:"to"` // the name of the Node
	Frame  trace.Bytes   `json:"frame"`
	Tunnel *trace.Tunnel `json:"tunnel,omitempty"` // nil: it goes by the Nodes' own network
}

// WhyAnswer is the answer.
type WhyAnswer struct {
	Node string `json:"node"`
	// Allowed is true if nothing on the whole way forbids the packet. Undecided is true if
	// nothing forbids it at the Nodes that answered, and other Nodes decide the rest.
	Allowed   bool   `json:"allowed"`
	Undecided bool   `json:"undecided,omitempty"`
	Sentence  string `json:"sentence"`
	// Ways are the packet's possible ways: one, or one for each endpoint of a Service.
	Ways []WhyWay `json:"ways"`
	// Origin is the Node where packets of the first end enter the cluster's network; empty for
	// any Node.
	Origin string   `json:"origin,omitempty"`
	Notes  []string `json:"notes,omitempty"` // policies and Egresses that are not in force, and other remarks
	Seen   *WhySeen `json:"seen,omitempty"`  // nil if no packet can be known
}

// WhyWay is one way of the packet, with the decisions on it.
type WhyWay struct {
	Endpoint string `json:"endpoint,omitempty"` // address:port of the Service's endpoint, and its Pod
	Allowed  bool   `json:"allowed"`
	Sentence string `json:"sentence"`
	// Denied says why the way ends; empty if it does not.
	Denied    string        `json:"denied,omitempty"`
	What      string        `json:"what"` // tcp 80 from default/client-a to default/web-a
	Decisions []WhyDecision `json:"decisions"`
	Ends      []string      `json:"ends,omitempty"` // where the packet goes, in words
	Next      *Carried      `json:"next,omitempty"` // another Node decides more
	// Unasked are Nodes that also decide, but were not asked: the Node of origin, and the one
	// in Next.
	Unasked []string     `json:"unasked,omitempty"`
	Walks   trace.Joined `json:"walks"`
	// Met has the counters of the entry that denies; nil if no packet can be known.
	Met *WhyMet `json:"met,omitempty"`
	// Severed is set if the packet is dropped before it arrives at the next Node.
	Severed bool `json:"severed,omitempty"`
	// Advice is what to do next.
	Advice string `json:"advice,omitempty"`
	// Entry is the entry that decides, if entries have no objects; nil for a table-miss.
	Entry *WhyEntry `json:"entry,omitempty"`
	// Open says what entries alone do not decide; then the way is undecided.
	Open string `json:"open,omitempty"`
}

// WhyEntry is an entry with its table.
type WhyEntry struct {
	Table string `json:"table"`
	trace.Entry
}

// text is the entry as a line of a dump.
func (e *WhyEntry) text() string {
	s := "table=" + e.Table + ", "
	if e.Cookie != "" {
		s = "cookie=" + e.Cookie + ", " + s
	}
	return s + entryShort(&e.Entry) + " actions=" + e.Actions
}

// WhyDecision is what policies say in one direction.
type WhyDecision struct {
	Node      string             `json:"node"`
	Direction string             `json:"direction"`         // ingress or egress
	Action    cluster.RuleAction `json:"action,omitempty"`  // empty: no rule matched
	Policies  []string           `json:"policies"`          // the policies that decided; none: no policy applies
	Rule      string             `json:"rule,omitempty"`    // its name, or its place
	Tier      string             `json:"tier,omitempty"`    // of an Antrea-native policy
	Priority  float64            `json:"priority,omitzero"` // likewise
	Isolated  bool               `json:"isolated,omitempty"`
}

// Where describes the rule: ingress rule DropOther, tier application, priority 5.
func (d *WhyDecision) Where() string {
	s := "rule " + d.Rule
	if !strings.HasPrefix(d.Rule, d.Direction) {
		s = d.Direction + " " + s
	}
	if d.Tier != "" {
		s += fmt.Sprintf(", tier %s, priority %v", d.Tier, d.Priority)
	}
	return s
}

// text describes a decision that allows the packet.
func (d *WhyDecision) text() string {
	switch d.Action {
	case cluster.ActionPass:
		return fmt.Sprintf("%s (%s) passes it, and nothing behind it decides", d.Policies[0], d.Where())
	case "":
		return "no policy decides on " + d.Direction
	}
	return fmt.Sprintf("%s allows it (%s)", d.Policies[0], d.Where())
}

// WhySeen sums up what all asked Nodes saw.
type WhySeen struct {
	Connections int `json:"connections"` // tracked connections
	// Dropped is how many of the kept dropped packets (DroppedPackets) went from the first end
	// to the second, including ARP.
	Dropped     int       `json:"dropped"`
	LastDropped time.Time `json:"lastDropped,omitzero"`
	LastReason  string    `json:"lastReason,omitempty"` // of the last dropped packet, with table or port
}

// and merges two Nodes' records. Each Node on a connection's way tracks it, so connections are
// not added.
func (s *WhySeen) and(o *WhySeen) *WhySeen {
	if s == nil || o == nil {
		return cmp.Or(s, o)
	}
	sum := &WhySeen{Connections: max(s.Connections, o.Connections), Dropped: s.Dropped + o.Dropped, LastDropped: s.LastDropped, LastReason: s.LastReason}
	if o.LastDropped.After(sum.LastDropped) {
		sum.LastDropped, sum.LastReason = o.LastDropped, o.LastReason
	}
	return sum
}

// text is the line "so far" of an answer.
func (s *WhySeen) text() string {
	text := count(s.Connections, "such connection is", "such connections are") + " tracked now"
	if s.Dropped == 0 {
		return text + ", and of their packets none is kept as dropped"
	}
	return fmt.Sprintf("%s, and of their packets %s kept as dropped, the last one at %s: %s",
		text, count(s.Dropped, "is", "are"), clockText(s.LastDropped), s.LastReason)
}

// WhyMet has the counters of the entry where a packet ends. They count all packets.
type WhyMet struct {
	Packets uint64        `json:"packets"`
	AgeNS   time.Duration `json:"ageNS"`  // since it was installed
	IdleNS  time.Duration `json:"idleNS"` // since the last packet
}

func (m *WhyMet) text() string {
	if m.Packets == 0 {
		return fmt.Sprintf("no packet has met the entry since it was installed %v ago", seconds(m.AgeNS))
	}
	return fmt.Sprintf("%s met the entry since it was installed %v ago, the last one %v ago", count(int(m.Packets), "packet has", "packets have"), seconds(m.AgeNS), seconds(m.IdleNS))
}

func seconds(d time.Duration) time.Duration { return d.Round(time.Second) }

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
