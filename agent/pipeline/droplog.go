package pipeline

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/tables/layout"
	"github.com/antrail/antrail/tables/programs"
	"github.com/antrail/antrail/trace"
)

// Dropped packets, with the names and objects that they had at that time. The switch keeps some
// for each worker (dataplane/lost.go). The log here keeps the last ones of all workers.

// dropLog is the last dropped packets. Any goroutine may use it.
type dropLog struct {
	p *Pipeline

	mu     sync.Mutex
	names  Walker // of ports, entries and objects
	owners owners
	ring   []api.DroppedPacket
	next   uint64 // No of the last packet
	missed uint64 // too fast for the switch or for pending
	seen   uint64 // number of the switch's next packet
	late   uint64 // packets that the switch overwrote before they were read
	Ports  portLosses
	mark   portMark // of Ports

	pending  sync.Mutex // protects the fields below; held only for moments
	refusals []refusal
	unkept   uint64 // refusals for which there was no room
}

// newDropLog makes the log of a pipeline's dropped packets. It keeps that many; 0 is the
// default number.
func newDropLog(p *Pipeline, keep int) *dropLog {
	return &dropLog{p: p, names: Walker{Pipeline: p}, Ports: portLosses{}, ring: make([]api.DroppedPacket, 0, cmp.Or(keep, config.DefaultKeep))}
}

// Since returns the kept packets with a larger No that want accepts, oldest first. missed is
// how many packets were dropped too fast to be kept. next is the No for the next call.
func (l *dropLog) Since(no uint64, want func(*api.DroppedPacket) bool) (all []api.DroppedPacket, missed, next uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.takeFromSwitch()
	first := max(no, l.next-uint64(len(l.ring)))
	for i := first; i < l.next; i++ {
		if p := &l.ring[i%uint64(cap(l.ring))]; want(p) {
			all = append(all, *p)
		}
	}
	return all, l.missed, l.next
}

// MissedSoFar is how many packets were dropped too fast to be kept.
func (l *dropLog) MissedSoFar() uint64 {
	_, missed, _ := l.Since(math.MaxUint64, func(*api.DroppedPacket) bool { return false })
	return missed
}

// takeFromSwitch reads new dropped packets from the switch. If the switch does not answer, the
// log stays as it is.
func (l *dropLog) takeFromSwitch() {
	failed := l.p.BeginAsking()
	fresh := l.p.Switch.DropsSince(l.seen)
	mark := l.p.portMark(fresh.Ports)
	var ports []telemetry.PortStats
	moved := mark != l.mark || fresh.Ports == 0 // 0: a switch of an older release
	if moved {
		ports = l.p.portStats()
	}
	if failed() != nil {
		return
	}
	l.names.refresh()
	all, missed := fresh.Packets, fresh.Missed+l.advance(fresh.Next, len(fresh.Packets))
	now, clock := time.Now(), l.p.Clock()
	l.owners.refresh(l.p)
	var lost []api.DroppedPacket
	if moved {
		lost, l.mark = l.Ports.since(l.p, ports, &l.names, now), mark
	}
	for i := range lost {
		if r := &lost[i]; r.Leaving && r.Length > 0 {
			r.Source, r.Destination = l.owners.of(wholeOf(r.Frame, r.Length))
		}
	}
	for i := range all {
		r := l.record(&all[i], now.Add(time.Duration(all[i].At-clock)))
		l.describe(&r)
		lost = append(lost, r)
	}
	refused, unkept := l.takeRefusals()
	lost = append(lost, refused...)
	l.missed = missed + unkept
	slices.SortStableFunc(lost, func(a, b api.DroppedPacket) int { return a.Time.Compare(b.Time) })
	for _, r := range lost {
		l.keep(r)
	}
}

// advance sets the number of the switch's next packet, after n were read. It returns how many
// packets were overwritten before they were read. A restarted switch numbers from 0.
func (l *dropLog) advance(next uint64, n int) (late uint64) {
	if l.seen > 0 && next >= l.seen {
		l.late += next - l.seen - uint64(n)
	}
	l.seen = next
	return l.late
}

// keep adds a packet to the ring.
func (l *dropLog) keep(r api.DroppedPacket) {
	l.next++
	r.No = l.next
	if at := int((l.next - 1) % uint64(cap(l.ring))); at < len(l.ring) {
		l.ring[at] = r
	} else {
		l.ring = append(l.ring, r)
	}
}

// record converts a dropped packet, with names.
func (l *dropLog) record(p *telemetry.DroppedPacket, when time.Time) api.DroppedPacket {
	n := l.p.Switch.Names()
	r := api.DroppedPacket{
		Time: when, Packets: 1, Port: l.names.port(n, p.Port), Reason: p.Reason.String(), Meaning: p.Reason.Sentence(),
		Tunnel: tunnelOf(&p.Tunnel), Length: p.Length, Frame: append(trace.Bytes(nil), p.Frame()...),
	}
	if p.Reason.InTable() {
		r.Table = TableName(n, p.Table)
	}
	if p.Entry != nil {
		r.Entry = l.names.Entry(n, &telemetry.Step{Kind: telemetry.StepEntry, Entry: p.Entry})
	}
	if p.CT.State != 0 {
		r.CT = droppedCT(&p.CT, programs.MarkNames(n))
	}
	return r
}

// describe adds what the packet's first bytes say.
func (l *dropLog) describe(r *api.DroppedPacket) {
	whole := wholeOf(r.Frame, r.Length)
	r.Packet = trace.Summary(whole)
	r.Source, r.Destination = l.owners.of(whole)
	r.Forged = l.p.forged(r, whole)
}

// forged says which source address of a Pod's packet is not the Pod's, if that is why it was
// dropped.
func (p *Pipeline) forged(r *api.DroppedPacket, frame []byte) string {
	spoofed := r.Table == "SpoofGuard" || r.Table == "ARPSpoofGuard" || r.Reason == telemetry.DropForeignMAC.String()
	if !spoofed || p.Objects == nil {
		return ""
	}
	own, ok := p.Objects.PodMAC(r.Port.No)
	if !ok || len(frame) < packet.EthernetLen {
		return ""
	}
	mac, ip := packet.Ethernet(frame).Src(), netip.Addr{}
	switch l := packet.ParseLayers(frame); {
	case l.L3 == 0, mac != own:
	case l.EtherType == packet.EtherTypeARP:
		a := packet.ARP(frame[l.L3:])
		mac, ip = a.SHA(), a.SPA()
	case l.EtherType == packet.EtherTypeIPv4:
		ip = packet.IPv4(frame[l.L3:]).Src()
	case l.EtherType == packet.EtherTypeIPv6:
		ip = packet.IPv6(frame[l.L3:]).Src()
	}
	switch {
	case mac != own:
		return fmt.Sprintf("with MAC %v, not the Pod's %v", net.HardwareAddr(mac[:]), net.HardwareAddr(own[:]))
	case ip.IsValid() && !ip.IsUnspecified() && r.Source != r.Port.Pod:
		return fmt.Sprintf("%v is not the Pod's", ip)
	}
	return ""
}

// WholeFrame is a dropped packet's frame in its full length. Bytes that were not kept are zero.
func WholeFrame(d *api.DroppedPacket) []byte { return wholeOf(d.Frame, d.Length) }

// wholeOf extends a frame's first bytes to its full length, so that headers and length agree.
func wholeOf(head []byte, n int) []byte {
	if n <= len(head) {
		return head
	}
	b := make([]byte, n)
	copy(b, head)
	return b
}

func droppedCT(c *telemetry.DroppedCT, marks layout.MarkNames) *api.DroppedCT {
	k := c.Key()
	return &api.DroppedCT{State: value(flow.CTState, &k, nil), Zone: c.Zone, Mark: c.Mark, Label: value(flow.CTLabel, &k, nil), Marks: marks.Conn(c.Mark, LabelValue(c.Label))}
}

// owners are the Pods by their addresses, at most keepOrigins old.
type owners struct {
	pods   map[netip.Addr]cluster.Name
	readAt time.Time
}

func (o *owners) refresh(p *Pipeline) {
	if now := time.Now(); p.Objects != nil && now.Sub(o.readAt) > keepOrigins {
		o.pods, o.readAt = p.Objects.PodAddresses(), now
	}
}

// of returns the Pods with the source and the destination address of a frame; "" if there is
// none.
func (o *owners) of(frame []byte) (src, dst string) {
	if len(o.pods) == 0 || len(frame) < packet.EthernetLen {
		return "", ""
	}
	l := packet.ParseLayers(frame)
	switch {
	case l.L3 == 0:
	case l.EtherType == packet.EtherTypeIPv4:
		ip := packet.IPv4(frame[l.L3:])
		return o.name(ip.Src()), o.name(ip.Dst())
	case l.EtherType == packet.EtherTypeIPv6:
		ip := packet.IPv6(frame[l.L3:])
		return o.name(ip.Src()), o.name(ip.Dst())
	case l.EtherType == packet.EtherTypeARP:
		a := packet.ARP(frame[l.L3:])
		return o.name(a.SPA()), o.name(a.TPA())
	}
	return "", ""
}

func (o *owners) name(a netip.Addr) string {
	if n, ok := o.pods[a]; ok {
		return n.Namespace + "/" + n.Name
	}
	return ""
}

// Query returns the packets that a query selects.
func (l *dropLog) Query(q *api.DropQuery) *api.DroppedPackets {
	all, missed, next := l.Since(q.Since, func(p *api.DroppedPacket) bool { return wantsDrop(q, p) })
	if q.Last > 0 {
		all = all[max(0, len(all)-q.Last):]
	}
	if all == nil {
		all = []api.DroppedPacket{}
	}
	return &api.DroppedPackets{Packets: all, Missed: missed, Next: next}
}

// First answers a client's first query. If the query's Pod has no packets, a note says why. The
// error says that the Pod does not exist.
func (l *dropLog) First(v url.Values) (q api.DropQuery, answer *api.DroppedPackets, err error) {
	if q, err = parseDropQuery(v); err != nil {
		return q, nil, err
	}
	answer = l.Query(&q)
	if q.Pod != "" && len(answer.Packets) == 0 && q.Since == 0 {
		answer.Note, err = l.p.absence(q.Pod)
	}
	if answer.Note == "" {
		answer.Note = severedText(l.p.Severed(q.Pod))
	}
	return q, answer, err
}

func parseDropQuery(v url.Values) (q api.DropQuery, err error) {
	q.Pod, q.Reason = v.Get("pod"), v.Get("reason")
	if n := v.Get("n"); n != "" {
		if q.Last, err = strconv.Atoi(n); err != nil || q.Last < 0 {
			return q, fmt.Errorf("n=%q is not a number of packets", n)
		}
	}
	if n := v.Get("since"); n != "" {
		if q.Since, err = strconv.ParseUint(n, 10, 64); err != nil {
			return q, fmt.Errorf("since=%q is not a number", n)
		}
	}
	if namespace, name, ok := strings.Cut(q.Pod, "/"); q.Pod != "" && (!ok || namespace == "" || name == "") {
		return q, fmt.Errorf("%q is not namespace/name of a Pod", q.Pod)
	}
	if q.Reason != "" && !slices.Contains(ReasonNames(), q.Reason) {
		return q, fmt.Errorf("there is no reason %q%s; there are %s", q.Reason, flow.Suggest(q.Reason, ReasonNames()), strings.Join(ReasonNames(), ", "))
	}
	return q, nil
}

func wantsDrop(q *api.DropQuery, p *api.DroppedPacket) bool {
	return (q.Reason == "" || p.Reason == q.Reason) &&
		(q.Pod == "" || slices.Contains([]string{p.Port.Pod, p.Source, p.Destination}, q.Pod))
}

// absence says why a Pod has no packets here; "" if it has a port.
func (p *Pipeline) absence(pod string) (string, error) {
	n, err := p.PodName(pod)
	if err != nil {
		return "", err
	}
	at, err := p.Objects.PodPlace(n)
	if err != nil || at.Port != 0 {
		return "", err
	}
	if self, err := p.Objects.Self(); err != nil || at.Node == self.Node {
		return fmt.Sprintf("Pod %s has no port in this switch", pod), nil
	}
	return fmt.Sprintf("Pod %s is on Node %s, whose agent has its dropped packets", pod, at.Node), nil
}

// PodName parses the name of a Pod. It fails for flow files, which have no Pods.
func (p *Pipeline) PodName(text string) (n cluster.Name, err error) {
	if p.Objects == nil {
		return n, errors.New("this agent's entries come from flow files: no Pods are known")
	}
	var ok bool
	if n.Namespace, n.Name, ok = strings.Cut(text, "/"); !ok || n.Namespace == "" || n.Name == "" || strings.Contains(n.Name, "/") {
		return n, fmt.Errorf("%q is not namespace/name of a Pod", text)
	}
	return n, nil
}
