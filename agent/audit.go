package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/tables"
)

// The log of what policies decide: for each packet that a rule with
// enableLogging sends to the agent, and for what is dropped of isolated Pods
// whose Namespace asks for it, a line of JSON in a file (auditfile.go).
//
// Packets that differ in nothing the line shows share one, which says how many
// they were. Lines wait up to a second for more of their kind (auditWindow).

// auditWindow is how long a line gathers packets.
const auditWindow = time.Second

// AuditLine is a line of the log of policies.
type AuditLine struct {
	Time  time.Time `json:"time"`  // of the first packet
	Table string    `json:"table"` // where it was decided
	// Policy is the policy's key (ClusterNetworkPolicy/guard). For what is
	// dropped because K8s NetworkPolicies isolate the Pod it is NetworkPolicy
	// alone: several may. Empty for a rule that is no more, or of flow files.
	Policy    string             `json:"policy"`
	Rule      string             `json:"rule,omitempty"`
	Direction string             `json:"direction"` // Ingress or Egress
	Action    control.RuleAction `json:"action"`
	Priority  uint16             `json:"priority,omitempty"`
	Pod       string             `json:"pod,omitempty"` // that the rule applies to: namespace/name

	Source          netip.Addr `json:"source"`
	SourcePort      uint16     `json:"sourcePort,omitempty"`
	Destination     netip.Addr `json:"destination"`
	DestinationPort uint16     `json:"destinationPort,omitempty"`
	Protocol        string     `json:"protocol"`
	ICMPType        *uint8     `json:"icmpType,omitempty"`
	ICMPCode        *uint8     `json:"icmpCode,omitempty"`

	Length  int    `json:"length"` // of the first packet in bytes, IP header included
	Packets int    `json:"packets"`
	Label   string `json:"label,omitempty"`
	// Conjunction is the rule's id in the entries of the dump.
	Conjunction uint32 `json:"conjunction,omitempty"`
}

// logged is what packets of one line have in common.
type logged struct {
	tables.Verdict
	port uint32 // of the Pod
	flight
}

// flight is where a packet comes from and where it goes.
type flight struct {
	src, dst         netip.Addr
	srcPort, dstPort uint16 // ICMP: type and code
	proto            uint8
	length           int
}

// audit gathers packets into lines. note may be called while runAudit runs.
type audit struct {
	to      io.Writer
	objects *control.Reconciler // nil with flow files
	log     *slog.Logger
	limit   int // lines in a window
	now     func() time.Time

	packets, lines atomic.Uint64 // so far
	lost           atomic.Uint64 // packets that have no line

	mu      sync.Mutex
	waiting map[logged]*AuditLine
	order   []*AuditLine
}

func newAudit(to io.Writer, objects *control.Reconciler, limit int, log *slog.Logger) *audit {
	return &audit{to: to, objects: objects, limit: limit, log: log, now: time.Now, waiting: map[logged]*AuditLine{}}
}

// note takes a packet-in down.
func (a *audit) note(pi *dataplane.PacketIn, v tables.Verdict) {
	f, ok := flightOf(pi.Frame)
	if !ok {
		return
	}
	port := pi.InPort
	if v.Direction == tables.Ingress {
		port = uint32(tables.TargetOFPortField.Get(&pi.Key).Lo)
	}
	a.packets.Add(1)
	key := logged{v, port, f}
	key.length = 0
	a.mu.Lock()
	defer a.mu.Unlock()
	line := a.waiting[key]
	switch {
	case line != nil:
		line.Packets++
	case len(a.order) >= a.limit:
		a.lost.Add(1)
	default:
		line = a.line(v, port, &f)
		a.waiting[key], a.order = line, append(a.order, line)
	}
}

// line begins a line with its first packet.
func (a *audit) line(v tables.Verdict, port uint32, f *flight) *AuditLine {
	l := &AuditLine{
		Time: a.now(), Table: v.Table, Direction: v.Direction.String(), Action: control.ActionOf(v.Action), Conjunction: v.Rule,
		Source: f.src, Destination: f.dst, Length: f.length, Packets: 1,
	}
	f.describe(l)
	if a.objects == nil {
		return l
	}
	if pod, ok := a.objects.PodAt(port); ok {
		l.Pod = pod.Namespace + "/" + pod.Name
	}
	if v.Rule == 0 {
		l.Policy = string(control.KindNetworkPolicy)
	} else if r := a.objects.RuleByID(v.Rule); r != nil {
		l.Policy, l.Rule, l.Priority, l.Label = r.Key.Policy.String(), r.Title(), r.Rule.Priority, r.LogLabel
	}
	return l
}

// flightOf reads a frame; false for what is no sound IP packet.
func flightOf(frame []byte) (f flight, ok bool) {
	l := packet.ParseLayers(frame)
	switch {
	case l.End == 0:
		return f, false
	case l.EtherType == packet.EtherTypeIPv4:
		ip := packet.IPv4(frame[l.L3:])
		f.src, f.dst = ip.Src(), ip.Dst()
	case l.EtherType == packet.EtherTypeIPv6:
		ip := packet.IPv6(frame[l.L3:])
		f.src, f.dst = ip.Src(), ip.Dst()
	default:
		return f, false
	}
	f.proto, f.length = l.Proto, l.End-l.L3
	if l.L4 == 0 {
		return f, true
	}
	switch l4 := frame[l.L4:l.End]; l.Proto {
	case packet.ProtoTCP, packet.ProtoUDP, packet.ProtoSCTP: // the ports begin all three
		f.srcPort, f.dstPort = packet.UDP(l4).SrcPort(), packet.UDP(l4).DstPort()
	case packet.ProtoICMP, packet.ProtoICMPv6:
		f.srcPort, f.dstPort = uint16(packet.ICMP(l4).Type()), uint16(packet.ICMP(l4).Code())
	}
	return f, true
}

// protocolNames are those of the protocols that policies know.
var protocolNames = map[uint8]string{
	packet.ProtoICMP: "ICMP", packet.ProtoIGMP: "IGMP", packet.ProtoTCP: "TCP", packet.ProtoUDP: "UDP",
	packet.ProtoICMPv6: "ICMPv6", packet.ProtoSCTP: "SCTP",
}

// describe fills in the protocol, and what it has for ports.
func (f *flight) describe(l *AuditLine) {
	l.Protocol = protocolNames[f.proto]
	switch f.proto {
	case packet.ProtoICMP, packet.ProtoICMPv6:
		typ, code := uint8(f.srcPort), uint8(f.dstPort)
		l.ICMPType, l.ICMPCode = &typ, &code
		return
	}
	if l.Protocol == "" {
		l.Protocol = strconv.Itoa(int(f.proto))
	}
	l.SourcePort, l.DestinationPort = f.srcPort, f.dstPort
}

// runAudit writes lines until ctx ends, and then what is left.
func (a *audit) runAudit(ctx context.Context) {
	tick := time.NewTicker(auditWindow)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			a.flush()
			return
		case <-tick.C:
			a.flush()
		}
	}
}

// flush writes the lines that wait.
func (a *audit) flush() {
	a.mu.Lock()
	lines := a.order
	a.order = nil
	clear(a.waiting)
	a.mu.Unlock()
	if len(lines) == 0 {
		return
	}
	if len(lines) == a.limit {
		a.log.Warn("the log of policies is at its limit; packets beyond it have no line", "linesPerSecond", a.limit, "lost", a.lost.Load())
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	for _, l := range lines {
		if err := e.Encode(l); err != nil {
			a.log.Error("a line of the log of policies", "error", err)
		}
	}
	a.lines.Add(uint64(len(lines)))
	if _, err := a.to.Write(b.Bytes()); err != nil {
		a.log.Error("the log of policies cannot be written", "error", err)
	}
}
