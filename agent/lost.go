package agent

import (
	"cmp"
	"fmt"
	"math"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/tables"
	"github.com/antrail/antrail/trace"
)

// Lost packets, with the names and objects that they had when they were lost. The
// switch keeps some for each worker (dataplane/lost.go); here the last ones of all
// workers are kept, whoever asks or not.

// Drops is the part of the configuration about lost packets.
type Drops struct {
	// Keep is how many lost packets can be asked for; 4096 when not given.
	Keep int `json:"keep,omitempty"`
	// Log writes a line to the agent's log when a port begins to lose packets for
	// a reason in a table, and at most one a minute after that; true when not given.
	Log *bool `json:"log,omitempty"`
}

const (
	defaultKeep = 4096
	mostKept    = 1 << 20
)

func (d *Drops) setDefaults() {
	orDefault(&d.Keep, defaultKeep)
	orDefault(&d.Log, new(true))
}

func (d *Drops) check(f *faults) {
	f.check(d.Keep >= 1 && d.Keep <= mostKept, "drops.keep: %d is not between 1 and %d", d.Keep, mostKept)
}

// LostPacket is a packet that was lost.
type LostPacket struct {
	// No counts them from 1, since the agent's start.
	No   uint64    `json:"no"`
	Time time.Time `json:"time"`
	// Packets is 1, or how many a port lost since it was last asked: a port counts,
	// and keeps the last one that it did not send, or that a tunnel refused.
	Packets uint64 `json:"packets"`
	// Port is where it entered, with its Pod, or, when it is Leaving, the port that
	// lost it on its way out.
	Port    trace.Port `json:"port"`
	Leaving bool       `json:"leaving,omitempty"`
	Reason  string     `json:"reason"`
	Meaning string     `json:"meaning"`
	// Table is where its walk ended, Entry what the table gave: nothing for a
	// table-miss, or where no table was asked.
	Table string       `json:"table,omitempty"`
	Entry *trace.Entry `json:"entry,omitempty"`
	CT    *LostCT      `json:"ct,omitempty"`
	// Source and Destination are the Pods with the packet's addresses, as
	// namespace/name.
	Source      string `json:"source,omitempty"`
	Destination string `json:"destination,omitempty"`
	// Forged is what the source has that is not the sending Pod's, in words.
	Forged string        `json:"forged,omitempty"`
	Tunnel *trace.Tunnel `json:"tunnel,omitempty"` // that it came in, or was to leave in
	Packet string        `json:"packet"`           // in a few words
	Length int           `json:"length"`           // in bytes
	// Frame is its first 128 bytes, with what NAT and entries had written.
	Frame trace.Bytes `json:"frame"`
}

// LostCT is what conntrack had said of a lost packet.
type LostCT struct {
	State string   `json:"state"`
	Zone  uint16   `json:"zone"`
	Mark  uint32   `json:"mark,omitempty"`
	Label string   `json:"label,omitempty"`
	Marks []string `json:"marks,omitempty"` // mark and label in words
}

// lostLog is the last lost packets. Any goroutine may ask it.
type lostLog struct {
	p *pipeline

	mu     sync.Mutex
	names  walker // of ports, entries and objects
	owners owners
	ring   []LostPacket
	next   uint64 // No of the next one, less 1
	missed uint64 // by the switch and by pending
	seen   uint64 // number of the next packet of the switch
	late   uint64 // packets that went before they were asked for
	ports  portLosses

	pending  sync.Mutex // of what follows; nobody holds it who waits
	refusals []refusal
	unkept   uint64 // those that there was no room for
}

func newLostLog(p *pipeline, keep int) *lostLog {
	return &lostLog{p: p, names: walker{p: p}, ports: portLosses{}, ring: make([]LostPacket, 0, cmp.Or(keep, defaultKeep))}
}

// since is the packets kept that are younger than No, oldest first, and that want
// takes. Missed is how many were lost too fast to be kept at all. Next is the No to
// ask with next.
func (l *lostLog) since(no uint64, want func(*LostPacket) bool) (all []LostPacket, missed, next uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.take()
	first := max(no, l.next-uint64(len(l.ring)))
	for i := first; i < l.next; i++ {
		if p := &l.ring[i%uint64(cap(l.ring))]; want(p) {
			all = append(all, *p)
		}
	}
	return all, l.missed, l.next
}

// missedSoFar is how many packets were lost too fast to be kept.
func (l *lostLog) missedSoFar() uint64 {
	_, missed, _ := l.since(math.MaxUint64, func(*LostPacket) bool { return false })
	return missed
}

// take takes over what the switch has noted: nothing if the switch fails to answer.
func (l *lostLog) take() {
	failed := l.p.beginAsking()
	all, next, missed := l.p.sw.LostSince(l.seen)
	ports := l.p.portStats()
	if failed() != nil {
		return
	}
	l.names.refresh()
	missed += l.advance(next, len(all))
	now, clock := time.Now(), l.p.clock()
	l.owners.refresh(l.p)
	lost := l.ports.since(l.p, ports, &l.names, now)
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
	refused, unkept := l.refused()
	lost = append(lost, refused...)
	l.missed = missed + unkept
	slices.SortStableFunc(lost, func(a, b LostPacket) int { return a.Time.Compare(b.Time) })
	for _, r := range lost {
		l.keep(r)
	}
}

// advance notes the number of the next packet of the switch after n were read. It gives
// how many went before they were asked for. A switch that has started again numbers from 0.
func (l *lostLog) advance(next uint64, n int) (late uint64) {
	if l.seen > 0 && next >= l.seen {
		l.late += next - l.seen - uint64(n)
	}
	l.seen = next
	return l.late
}

// keep puts a packet into the ring.
func (l *lostLog) keep(r LostPacket) {
	l.next++
	r.No = l.next
	if at := int((l.next - 1) % uint64(cap(l.ring))); at < len(l.ring) {
		l.ring[at] = r
	} else {
		l.ring = append(l.ring, r)
	}
}

// record gives a lost packet its names.
func (l *lostLog) record(p *dataplane.LostPacket, when time.Time) LostPacket {
	n := l.p.sw.Names()
	r := LostPacket{
		Time: when, Packets: 1, Port: l.names.port(n, p.Port), Reason: p.Reason.String(), Meaning: p.Reason.Sentence(),
		Tunnel: tunnelOf(&p.Tunnel), Length: p.Length, Frame: append(trace.Bytes(nil), p.Frame()...),
	}
	if p.Reason.InTable() {
		r.Table = tableName(n, p.Table)
	}
	if p.Entry != nil {
		r.Entry = l.names.entry(n, &dataplane.Step{Kind: dataplane.StepEntry, Entry: p.Entry})
	}
	if p.CT.State != 0 {
		r.CT = lostCT(&p.CT, tables.MarkNames{Names: n})
	}
	return r
}

// describe says what a packet is, from its first bytes.
func (l *lostLog) describe(r *LostPacket) {
	whole := wholeOf(r.Frame, r.Length)
	r.Packet = trace.Summary(whole)
	r.Source, r.Destination = l.owners.of(whole)
	r.Forged = l.p.forged(r, whole)
}

// forged says what a Pod's packet has for a source that is not the Pod's, if that is why
// it was lost.
func (p *pipeline) forged(r *LostPacket, frame []byte) string {
	spoofed := r.Table == "SpoofGuard" || r.Table == "ARPSpoofGuard" || r.Reason == dataplane.DropForeignMAC.String()
	if !spoofed || p.objects == nil {
		return ""
	}
	own, ok := p.objects.PodMAC(r.Port.No)
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

// wholeOf is a frame's first bytes as long as it was, so that its headers agree
// with it.
func wholeOf(head []byte, n int) []byte {
	if n <= len(head) {
		return head
	}
	b := make([]byte, n)
	copy(b, head)
	return b
}

func lostCT(c *dataplane.LostCT, marks tables.MarkNames) *LostCT {
	k := c.Key()
	return &LostCT{State: value(flow.CTState, &k, nil), Zone: c.Zone, Mark: c.Mark, Label: value(flow.CTLabel, &k, nil), Marks: marks.Conn(c.Mark, labelValue(c.Label))}
}

// owners are the Pods by their addresses, as they were lately.
type owners struct {
	pods  map[netip.Addr]control.Name
	asked time.Time
}

func (o *owners) refresh(p *pipeline) {
	if now := time.Now(); p.objects != nil && now.Sub(o.asked) > keepOrigins {
		o.pods, o.asked = p.objects.PodAddresses(), now
	}
}

// of is the Pods with the source and destination address of a frame, "" where
// there is none.
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
