package packetin

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
	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/policy"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/tables"
)

// The audit log of policies. A line of JSON is written (auditfile.go) for:
//
//   - packets that a rule with enableLogging sends to the agent,
//   - packets that isolation drops, if the Pod's Namespace asks for these lines.
//
// Packets that would have equal lines share one line, which counts them. A line waits up to
// auditWindow for more such packets.

// auditWindow is how long a line collects packets.
const auditWindow = time.Second

// AuditLine is a line of the log of policies.
type AuditLine struct {
	Time  time.Time `json:"time"`  // of the first packet
	Table string    `json:"table"` // the table of the decision
	// Policy is the policy's key, for example ClusterNetworkPolicy/guard. If isolation drops
	// the packet, it is only NetworkPolicy, because several may isolate a Pod. It is empty for
	// a removed rule, and with flow files.
	Policy    string             `json:"policy"`
	Rule      string             `json:"rule,omitempty"`
	Direction string             `json:"direction"` // Ingress or Egress
	Action    cluster.RuleAction `json:"action"`
	Priority  uint16             `json:"priority,omitempty"`
	Pod       string             `json:"pod,omitempty"` // the Pod that the rule applies to: namespace/name

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
	// Conjunction is the rule's conjunction id in dumped entries.
	Conjunction uint32 `json:"conjunction,omitempty"`
}

// logged is the key of a line: what its packets have in common.
type logged struct {
	tables.Verdict
	port uint32 // of the Pod
	Flight
}

// Flight is where a packet comes from and where it goes.
type Flight struct {
	Src, Dst         netip.Addr
	SrcPort, DstPort uint16 // ICMP: type and code
	Proto            uint8
	Length           int // of the IP packet, in bytes
}

// Audit collects packets into lines. Packets may come while RunAudit runs.
type Audit struct {
	to      io.Writer
	objects *control.Reconciler // nil with flow files
	log     *slog.Logger
	limit   int // lines in a window
	// Now is the clock of the lines; by default time.Now.
	Now func() time.Time

	// Packets and Lines count packets and lines. Dropped counts packets without a line.
	Packets, Lines, Dropped atomic.Uint64

	mu      sync.Mutex
	waiting map[logged]*AuditLine
	order   []*AuditLine
}

// NewAudit makes an audit log that writes to a writer, with at most limit lines a second.
// objects have the names of policies and Pods; nil with flow files.
func NewAudit(to io.Writer, objects *control.Reconciler, limit int, log *slog.Logger) *Audit {
	return &Audit{to: to, objects: objects, limit: limit, log: log, Now: time.Now, waiting: map[logged]*AuditLine{}}
}

// notePacketIn counts a packet-in in its line.
func (a *Audit) notePacketIn(pi *telemetry.PacketIn, v tables.Verdict) {
	f, ok := FlightOf(pi.Frame)
	if !ok {
		return
	}
	port := pi.InPort
	if v.Direction == tables.Ingress {
		port = uint32(tables.TargetOFPortField.Get(&pi.Key).Lo)
	}
	a.Packets.Add(1)
	key := logged{v, port, f}
	key.Length = 0
	a.mu.Lock()
	defer a.mu.Unlock()
	line := a.waiting[key]
	switch {
	case line != nil:
		line.Packets++
	case len(a.order) >= a.limit:
		a.Dropped.Add(1)
	default:
		line = a.line(v, port, &f)
		a.waiting[key], a.order = line, append(a.order, line)
	}
}

// line makes a line for its first packet.
func (a *Audit) line(v tables.Verdict, port uint32, f *Flight) *AuditLine {
	l := &AuditLine{
		Time: a.Now(), Table: v.Table, Direction: v.Direction.String(), Action: policy.ActionOf(v.Action), Conjunction: v.Rule,
		Source: f.Src, Destination: f.Dst, Length: f.Length, Packets: 1,
	}
	f.describe(l)
	if a.objects == nil {
		return l
	}
	if pod, ok := a.objects.PodAt(port); ok {
		l.Pod = pod.Namespace + "/" + pod.Name
	}
	if v.Rule == 0 {
		l.Policy = string(cluster.KindNetworkPolicy)
	} else if r := a.objects.RuleByID(v.Rule); r != nil {
		l.Policy, l.Rule, l.Priority, l.Label = r.Key.Policy.String(), r.Title(), r.Rule.Priority, r.LogLabel
	}
	return l
}

// FlightOf reads a frame. ok is false if the frame is not a well-formed IP packet.
func FlightOf(frame []byte) (f Flight, ok bool) {
	l := packet.ParseLayers(frame)
	switch {
	case l.End == 0:
		return f, false
	case l.EtherType == packet.EtherTypeIPv4:
		ip := packet.IPv4(frame[l.L3:])
		f.Src, f.Dst = ip.Src(), ip.Dst()
	case l.EtherType == packet.EtherTypeIPv6:
		ip := packet.IPv6(frame[l.L3:])
		f.Src, f.Dst = ip.Src(), ip.Dst()
	default:
		return f, false
	}
	f.Proto, f.Length = l.Proto, l.End-l.L3
	if l.L4 == 0 {
		return f, true
	}
	switch l4 := frame[l.L4:l.End]; l.Proto {
	case packet.ProtoTCP, packet.ProtoUDP, packet.ProtoSCTP: // the three have their ports at the same place
		f.SrcPort, f.DstPort = packet.UDP(l4).SrcPort(), packet.UDP(l4).DstPort()
	case packet.ProtoICMP, packet.ProtoICMPv6:
		f.SrcPort, f.DstPort = uint16(packet.ICMP(l4).Type()), uint16(packet.ICMP(l4).Code())
	}
	return f, true
}

// ProtocolNames are the names of the protocols that policies know.
var ProtocolNames = map[uint8]string{
	packet.ProtoICMP: "ICMP", packet.ProtoIGMP: "IGMP", packet.ProtoTCP: "TCP", packet.ProtoUDP: "UDP",
	packet.ProtoICMPv6: "ICMPv6", packet.ProtoSCTP: "SCTP",
}

// describe fills in a line's protocol and ports, or type and code.
func (f *Flight) describe(l *AuditLine) {
	l.Protocol = ProtocolNames[f.Proto]
	switch f.Proto {
	case packet.ProtoICMP, packet.ProtoICMPv6:
		typ, code := uint8(f.SrcPort), uint8(f.DstPort)
		l.ICMPType, l.ICMPCode = &typ, &code
		return
	}
	if l.Protocol == "" {
		l.Protocol = strconv.Itoa(int(f.Proto))
	}
	l.SourcePort, l.DestinationPort = f.SrcPort, f.DstPort
}

// RunAudit writes lines every auditWindow until ctx ends, and then the rest.
func (a *Audit) RunAudit(ctx context.Context) {
	tick := time.NewTicker(auditWindow)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			a.Flush()
			return
		case <-tick.C:
			a.Flush()
		}
	}
}

// Flush writes the collected lines.
func (a *Audit) Flush() {
	a.mu.Lock()
	lines := a.order
	a.order = nil
	clear(a.waiting)
	a.mu.Unlock()
	if len(lines) == 0 {
		return
	}
	if len(lines) == a.limit {
		a.log.Warn("the audit log is at its limit: packets beyond it have no line", "linesPerSecond", a.limit, "lost", a.Dropped.Load())
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	for _, l := range lines {
		if err := e.Encode(l); err != nil {
			a.log.Error("cannot encode a line of the audit log", "error", err)
		}
	}
	a.Lines.Add(uint64(len(lines)))
	if _, err := a.to.Write(b.Bytes()); err != nil {
		a.log.Error("cannot write the audit log", "error", err)
	}
}
