package dataplane

import (
	"encoding/binary"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/packet"
)

// Recording: while a packet walks for which the cache had nothing, the walk
// notes what it met. Whatever cannot be replayed forbids the recording; in
// doubt it does.

// recording is the walk under way as the cache will remember it.
type recording struct {
	on      bool // a walk is being recorded, and nothing has forbidden it yet
	path    path
	parts   []part // its lookups
	meets   bool   // it looked a table up that may hold learned entries
	steps   [maxSteps]conntrack.Seen
	n       int               // steps
	est     bool              // conntrack called the packet established
	plain   bool              // a step knows a connection: only plain packets pass it
	alike   bool              // ports have told nothing, but what its stretches asked for (opening.go)
	begins  conntrack.Request // of the ct() that began a connection; zero without
	chooser *group            // that chose a bucket by the ports too; nil for none
	bucket  int               // of its own
	learns  uint64            // changes of learned entries when the walk began
	layers  packet.Layers
	head    [sigL4v6 + packet.UDPLen]byte // the frame's headers when it began
}

// begin starts to record the walk of a frame whose headers lie where l says. The
// rest of path is written when the walk is over: few walks come that far.
func (r *recording) begin(f *packet.Frame, l *packet.Layers, learns uint64) {
	r.on, r.meets, r.est, r.plain, r.alike = true, false, false, false, true
	r.begins.Commit, r.chooser = false, nil
	r.n, r.learns, r.layers = 0, learns, *l
	r.path.visits, r.path.groups, r.parts = r.path.visits[:0], r.path.groups[:0], r.parts[:0]
	if b := f.Bytes(); len(b) >= len(r.head) {
		r.head = [len(r.head)]byte(b)
	} else {
		copy(r.head[:], b)
	}
}

// forbid says that the walk cannot be replayed.
func (r *recording) forbid() { r.on = false }

// visit notes a lookup and what it gave.
func (r *recording) visit(id uint8, t *table, e *entry) {
	if !r.on {
		return
	}
	r.alike = false
	p := part{visited: visited{table: t.live, id: id}}
	if e != nil {
		p.entry = e.counters
	}
	r.parts = append(r.parts, p)
	r.meets = r.meets || t.live.mayLearn.Load()
}

// stretch notes the lookups of a stretch that was taken.
func (r *recording) stretch(s *stretch) {
	if r.on {
		r.parts = append(r.parts, part{stretch: s})
		r.meets = r.meets || s.meets
	}
}

// part is a lookup of a walk, or a stretch that it took.
type part struct {
	visited
	stretch *stretch
}

// complete lists the walk's lookups, which most walks are not asked for.
func (r *recording) complete() {
	for i := range r.parts {
		if p := &r.parts[i]; p.stretch != nil {
			r.path.visits = append(r.path.visits, p.stretch.visits...)
		} else {
			r.path.visits = append(r.path.visits, p.visited)
		}
	}
}

// group notes counters of a group or bucket that was credited.
func (r *recording) group(c *bucketCounters) {
	if r.on {
		r.path.groups = append(r.path.groups, c)
	}
}

// answer notes what conntrack said, if it can be asked for the same again.
func (r *recording) answer(f *packet.Frame, m *conntrack.Meta, req *conntrack.Request, v conntrack.Verdict) {
	if !r.on {
		return
	}
	if r.begins.Commit {
		r.on = false
		return
	}
	if r.n > 0 && m.Began(&r.steps[r.n-1]) {
		r.began(m, req, v)
		return
	}
	s, ok := m.Seen()
	if !ok || req.Force || v.Drop != conntrack.DropNone || !s.Known() && !r.sameTuple(f) {
		r.on = false
		return
	}
	r.plain = r.plain || s.Known()
	for i := range r.steps[:r.n] {
		covered, apart := s.Follows(&r.steps[i])
		if covered {
			return
		}
		r.on = r.on && apart
	}
	if r.n == maxSteps {
		r.on = false
		return
	}
	r.steps[r.n] = s
	r.n++
	r.est = r.est || m.State&conntrack.Established != 0
}

// sameTuple says whether a frame still shows the addresses and ports that it
// came with.
func (r *recording) sameTuple(f *packet.Frame) bool {
	b, l4 := f.Bytes(), r.layers.L4
	switch {
	case len(b) < l4+packet.UDPLen:
		return false
	case r.layers.EtherType == packet.EtherTypeIPv6:
		const addrs = sigL3 + 8
		return string(b[addrs:l4+6]) == string(r.head[addrs:l4+6])
	}
	const addrs, ports = sigL3 + 12, sigL4v4 - 2 // two words that meet, to behind the ports or an ICMP identifier
	return binary.LittleEndian.Uint64(b[addrs:]) == binary.LittleEndian.Uint64(r.head[addrs:]) &&
		binary.LittleEndian.Uint64(b[ports:]) == binary.LittleEndian.Uint64(r.head[ports:])
}

// repeats says of which drops another packet of the same signature would die
// too.
func (r DropReason) repeats() bool {
	switch r {
	case DropByEntry, DropTableMiss, DropNoOutput, DropToInPort, DropNoSuchPort, DropNoTunnelDst, DropTTL, DropTooDeep, DropNoBucket:
		return true
	}
	return false
}

// remember ends a recording: the walk is over, and its frame not yet handed on.
func (k *walk) remember() {
	r := &k.w.rec
	if !r.on {
		return
	}
	r.on = false
	p := &r.path
	*p = path{visits: p.visits, groups: p.groups}
	switch {
	case k.sent == 1 && k.held.yes && k.lost == 0 && k.waits == 0:
		p.out, p.mark = k.held.port, k.frame.Mark
		if p.out.tunnel {
			p.tunnel = k.frame.Tunnel
		}
	case k.sent == 0 && k.lost == 0 && k.waits == 0 && k.reason.repeats():
		p.loss = loss{k.reason, k.at, k.by, lostCT(&k.ct)}
	default:
		return
	}
	p.last, p.met = k.last, k.met
	mask, opening := r.opening()
	switch {
	case opening:
		if r.chooser != nil {
			k.w.cache.sig.widenBucket(r.bucket)
		} else {
			k.w.cache.sig.widen(mask)
		}
		if r.meets {
			p.learned = k.w.stretches.awoken + 1
		}
		if r.begins.Commit {
			p.begins, r.n = r.begins, 0
		}
	case r.begins.Commit:
		return
	case r.meets:
		p.learned = r.learns
	}
	if opening && r.chooser != nil && k.w.cache.crowded() || !k.w.cache.keep(r, k) || !opening {
		return
	}
	k.w.cache.openings.add(mask)
	if r.chooser != nil {
		k.w.cache.ask(r.chooser, k.inPort)
	}
}

// keep makes an entry of a recorded walk, if it is worth one, and says so.
func (c *cache) keep(r *recording, k *walk) bool {
	if r.plain && !conntrack.Plain(r.layers.Proto, c.sig.tcpFlags()) {
		return false
	}
	if !r.est && !c.once.seen(c.sig.hash) {
		c.count[CacheOnce]++
		return false
	}
	var ch change
	if !ch.between(&r.layers, r.head[:], k.frame) {
		return false
	}
	if len(c.paths) > c.most/pathShare {
		c.tell(k.w)
		c.forget()
	}
	e := c.place(k.inPort)
	if e == nil {
		return false
	}
	r.complete()
	e.used, e.path, e.change = c.round, c.intern(&r.path), ch
	e.ct, e.steps, e.asks = r.steps, uint8(r.n), false
	c.count[CacheKept]++
	return true
}

// pathShare is how many entries there may be for each path.
const pathShare = 4

// change is what a walk does to the headers of a frame that has a signature.
type change struct {
	parts changed
	eth   [12]byte // both addresses
	ip    [4]byte  // IPv6: the first four bytes; IPv4: TOS in the second
	ttl   uint8
	ports [4]byte
	// What is added to the sums of the IP header, of the addresses in the pseudo
	// header, and of the ports.
	ipSum, pseudoSum, portSum uint16
	addrs                     [32]byte // IPv4: 8
}

// changed is which parts of a frame change.
type changed uint8

const (
	changedEth changed = 1 << iota
	changedIP          // and TTL
	changedAddrs
	changedPorts
	changedLabel // of changedIP
	changedSrc   // of changedPorts: the source's
)

// between finds the change from the headers before to the frame as it is now.
// It reports false for one that it has no room for.
func (ch *change) between(l *packet.Layers, before []byte, f *packet.Frame) bool {
	b := f.Bytes()
	if now := packet.ParseLayers(b); now != *l {
		return false
	}
	differ := func(from, to int) bool { return string(before[from:to]) != string(b[from:to]) }
	if differ(0, 12) {
		ch.parts |= changedEth
		copy(ch.eth[:], b)
	}
	n := 8
	addrs, ttl := sigL3+12, sigL3+8
	if l.EtherType == packet.EtherTypeIPv6 {
		n, addrs, ttl = 32, sigL3+8, sigL3+7
		if packet.IPv6(before[sigL3:]).FlowLabel() != packet.IPv6(b[sigL3:]).FlowLabel() {
			ch.parts |= changedLabel
		}
	}
	if differ(sigL3, sigL3+4) || differ(ttl, ttl+1) {
		ch.parts |= changedIP
		copy(ch.ip[:], b[sigL3:])
		ch.ttl = b[ttl]
		ch.ipSum = sumChange(ch.ipSum, before[sigL3:sigL3+2], b[sigL3:])
		ch.ipSum = sumChange(ch.ipSum, before[ttl&^1:ttl&^1+2], b[ttl&^1:])
	}
	if differ(addrs, addrs+n) {
		ch.parts |= changedAddrs
		copy(ch.addrs[:n], b[addrs:])
		ch.pseudoSum = sumChange(0, before[addrs:addrs+n], b[addrs:])
		ch.ipSum = fold(uint32(ch.ipSum) + uint32(ch.pseudoSum))
	}
	ports := before[l.L4 : l.L4+4]
	if l.Proto == packet.ProtoICMP || l.Proto == packet.ProtoICMPv6 { // an identifier that NAT moves is walked
		return !differ(l.L4, l.L4+2) && !differ(l.L4+4, l.L4+6)
	}
	if string(ports) != string(b[l.L4:l.L4+4]) {
		ch.parts |= changedPorts
		copy(ch.ports[:], b[l.L4:])
		ch.portSum = sumChange(0, ports, b[l.L4:])
		if string(ports[:2]) != string(b[l.L4:l.L4+2]) {
			ch.parts |= changedSrc
		}
	}
	return true
}

// sumChange adds to a sum what it changes by when 16-bit words become others.
func sumChange(sum uint16, before, after []byte) uint16 {
	for i := 0; i < len(before); i += 2 {
		sum = fold(uint32(sum) + uint32(^binary.BigEndian.Uint16(before[i:])) + uint32(binary.BigEndian.Uint16(after[i:])))
	}
	return sum
}

// fold adds the carries of s back in.
func fold(s uint32) uint16 {
	s = s>>16 + s&0xffff
	return uint16(s>>16 + s)
}
