package conntrack

import "github.com/antrail/antrail/packet"

// visit is one ct() action at work.
type visit struct {
	shown
	t   *Table
	f   *packet.Frame
	l   *packet.Layers
	m   *Meta
	r   *Request
	now int64

	slot uint32 // of the packet's connection, 0 for none
	e    *entry
	dir  int

	rewrite bool
	to      [2]key // the connection's keys, when the packet is to be rewritten
}

// Track is one ct() action on the packet in f, whose headers lie where l says.
// It writes what later tables see to m, which must be the packet's own (zero
// for a packet that has not met conntrack, or after ct_clear); when r.NAT is
// set it may rewrite addresses, ports and checksums in the frame, which
// changes no lengths, so l stays right. now is the time in nanoseconds on the
// clock of Config.Now.
//
// A packet that cannot be tracked gets +inv+trk and goes on; one that must not
// go on gets a Verdict with a DropReason.
func (t *Table) Track(f *packet.Frame, l *packet.Layers, m *Meta, r *Request, now int64) Verdict {
	v := visit{t: t, f: f, l: l, m: m, r: r, now: now}
	if !v.read(f.Bytes(), l, r.Zone) || !v.verified() {
		*m = Meta{State: Invalid | Tracked, Zone: r.Zone}
		return Verdict{}
	}
	t.guard.enter()
	drop := v.run()
	if drop != DropNone {
		t.stats.Drops[drop]++
	}
	t.guard.leave()
	if drop != DropNone {
		return Verdict{Drop: drop}
	}
	return Verdict{Rewritten: v.translate()}
}

// verified verifies the packet's checksums, once on its way.
func (v *visit) verified() bool {
	v.m.sound = v.m.sound || sound(v.f, v.l)
	return v.m.sound
}

// run is the order of work from a readable packet on (specification section
// 3). The table is locked.
func (v *visit) run() DropReason {
	if v.recall() {
		v.finish()
		return DropNone
	}
	v.find()
	if v.e != nil && (v.forced() || !v.meet()) {
		v.t.remove(v.slot)
		v.slot, v.e = 0, nil
	}
	drop := DropNone
	switch {
	case v.e != nil:
	case v.serverFirst():
		drop = DropServerFirst
	default:
		drop = v.begin()
	}
	v.finish()
	return drop
}

// recall takes up the connection that this packet was found to belong to
// before, in this zone, if its tuple still is as conntrack left it. Then the
// state machine does not run again, and ct_state stays (D6).
func (v *visit) recall() bool {
	m := v.m
	if m.State&Tracked == 0 || m.Zone != v.r.Zone || v.r.Force || m.seen != v.key || m.State&Related != 0 != v.related {
		return false
	}
	e := v.t.slab.get(m.at)
	if e == nil || e.expires <= v.now {
		return false
	}
	v.slot, v.e, v.dir = m.at.slot, e, int(m.dir)
	return true
}

// find looks the packet up. One that was translated in this zone before shows
// a tuple that is nobody's key, but whose answer's is; a tuple seen in another
// zone, or rewritten since, is looked up as it is.
func (v *visit) find() {
	translated := v.m.State & (SNATed | DNATed)
	v.m.State &= translated
	if translated != 0 && v.m.Zone == v.r.Zone {
		back := v.key.reversed()
		if slot, dir, ok := v.t.find(&back, v.now); ok {
			v.slot, v.e, v.dir = slot, v.t.slab.at(slot), 1-dir
			return
		}
	}
	v.m.State = 0
	if slot, dir, ok := v.t.find(&v.key, v.now); ok {
		v.slot, v.e, v.dir = slot, v.t.slab.at(slot), dir
	}
}

// forced says whether force replaces the connection: only by a packet of its
// own that runs against it (CT-23).
func (v *visit) forced() bool { return v.r.Force && v.dir == reply && !v.related }

// meet runs a known connection's state machine. It reports false when the
// packet begins another connection.
func (v *visit) meet() bool {
	var back State
	if v.dir == reply {
		back = Reply
	}
	if v.related {
		v.m.State |= Related | back
		return true
	}
	switch v.update() {
	case outcomeNew:
		v.m.State |= New
	case outcomeEstablished:
		v.m.State |= Established | back
	case outcomeInvalid:
		v.m.State = Invalid
	case outcomeStartOver:
		return false
	}
	return true
}

func (v *visit) update() outcome {
	p := v.f.Bytes()[v.l4:v.end]
	switch v.key.proto {
	case packet.ProtoTCP:
		g := readSegment(packet.TCP(p))
		return v.t.updateTCP(v.e, v.dir, &g, v.now)
	case packet.ProtoSCTP:
		return v.t.updateSCTP(v.e, v.dir, packet.SCTP(p), v.now)
	}
	return v.t.updateOther(v.e, v.dir, v.now)
}

// finish applies NAT, mark and label of the connection to the packet, and
// writes what it carries on.
func (v *visit) finish() {
	m := v.m
	m.State |= Tracked
	m.Zone = v.r.Zone
	if v.e == nil {
		m.Mark, m.Label, m.Orig, m.at = 0, Label{}, v.key.tuple(), handle{}
		return
	}
	m.at, m.dir, m.seen = handle{v.slot, v.e.gen}, uint8(v.dir), v.key
	if m.State&Invalid == 0 {
		v.nat()
		v.mark()
	}
	m.Mark, m.Label, m.Orig = v.e.mark, v.e.label, v.e.keys[original].tuple()
}

// nat decides whether the packet is to be translated: when the action asks
// for it, the connection has a translation, and the packet was not translated
// in this zone before. ct_state says so even if nothing changes (CT-3).
func (v *visit) nat() {
	bits := v.e.natBits(v.dir)
	if v.r.NAT == nil || bits == 0 || v.m.State&(SNATed|DNATed) != 0 {
		return
	}
	v.m.State |= bits
	v.m.seen = v.e.keys[1-v.dir].reversed()
	v.rewrite, v.to = v.m.seen != v.key, v.e.keys
}

// natBits is what NAT does to a packet of direction dir: the reply to a
// destination that was translated has its source translated back.
func (e *entry) natBits(dir int) State {
	switch {
	case e.flags&(sourceNAT|destinationNAT) == 0:
		return 0
	case (e.flags&sourceNAT != 0) == (dir == original):
		return SNATed
	}
	return DNATed
}

// mark writes the action's mark and label bits to the connection.
func (v *visit) mark() {
	e, r := v.e, v.r
	e.mark = e.mark&^r.MarkMask | r.Mark&r.MarkMask
	e.label.Hi = e.label.Hi&^r.LabelMask.Hi | r.Label.Hi&r.LabelMask.Hi
	e.label.Lo = e.label.Lo&^r.LabelMask.Lo | r.Label.Lo&r.LabelMask.Lo
}
