package conntrack

import "github.com/antrail/antrail/packet"

// The order of work in one ct() action, as Track and run do it:
//
//	1. read      the packet's tuple and its checksums (read.go); else +inv+trk
//	2. recall    whether this packet has been tracked in this zone before: a
//	             second ct() does not run the state machine again (D6)
//	3. find      the connection of the tuple, in either direction (index.go)
//	4. meet      the state machine of its protocol moves (tcp.go, sctp.go,
//	             other.go), or says that the packet begins another connection
//	5. begin     without a connection: invalid or new, and with commit an entry,
//	             whose translation is chosen now and never again (commit.go, nat.go)
//	6. finish    ct_state, ct_mark and ct_label as later tables see them
//	7. translate the frame, when the action says nat (rewrite.go)

// visit is one ct() action at work.
type visit struct {
	shown
	t   *Table
	f   *packet.Frame
	l   *packet.Layers
	m   *Meta
	r   *Request
	now int64

	at   handle // the packet's connection, the zero handle for none
	dir  int
	e    entry  // a copy of it, worked on
	held bool   // the cell's lock is held
	head uint64 // of its cell, when it was looked at (look.go)
	gone bool   // the connection has gone on by the packet, without the lock (look.go)
	once bool   // no other reply key is chosen when the first one is taken

	rewrite bool // to the connection's other key
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
	var v visit // filled in place: a literal is made elsewhere and copied
	v.t, v.f, v.l, v.m, v.r, v.now = t, f, l, m, r, now
	if !v.read(f.Bytes(), l, r.Zone) || !v.verified() {
		*m = Meta{State: Invalid | Tracked, Zone: r.Zone}
		return Verdict{}
	}
	if drop := v.run(); drop != DropNone {
		t.counts.drops[drop].Add(1)
		t.shares.of(t, r.InPort).refused.Add(1)
		return Verdict{Drop: drop}
	}
	return Verdict{Rewritten: v.translate()}
}

// verified verifies the packet's checksums, once on its way.
func (v *visit) verified() bool {
	v.m.sound = v.m.sound || sound(v.f, v.l)
	return v.m.sound
}

// run is the order of work from a readable packet on.
func (v *visit) run() DropReason {
	if v.m.again = v.recall(); v.m.again {
		v.finish()
		return DropNone
	}
	for {
		if !v.unknown() {
			v.find()
		}
		if v.known() && (v.forced() || !v.meet()) {
			v.replace() // a translated packet may show the key of yet another
			continue
		}
		if v.known() {
			v.finish()
			return DropNone
		}
		if drop, again := v.begin(); !again {
			v.finish()
			return drop
		}
	}
}

// known says whether the packet has a connection.
func (v *visit) known() bool { return v.at.slot != 0 }

// take locks a connection and copies it, if its time has not passed.
func (v *visit) take(h handle) bool {
	c := v.t.arena.at(h.slot)
	if !c.lock(h.gen) {
		return false
	}
	if c.expires() <= v.now {
		c.unlock(h.gen)
		return false
	}
	c.load(&v.e)
	v.t.fetch(&v.e)
	v.at, v.held = h, true
	return true
}

// replace ends the packet's connection, so that the packet may begin another.
// Nothing of what was done to the copy is kept.
func (v *visit) replace() {
	v.t.arena.at(v.at.slot).unlock(v.at.gen)
	v.t.remove(v.at, whatever, v.now)
	v.at, v.e, v.held = handle{}, entry{}, false
}

// release writes back what has changed and gives the lock back.
func (v *visit) release() {
	if !v.held {
		return
	}
	c := v.t.arena.at(v.at.slot)
	v.t.relist(&v.e, v.at.slot, v.now)
	v.t.keepAway(c, &v.e)
	c.store(&v.e)
	c.unlock(v.at.gen)
	v.held = false
}

// recall takes up the connection that this packet was found to belong to
// before, in this zone, if its tuple still is as conntrack left it. Then the
// state machine does not run again, and ct_state stays (D6).
func (v *visit) recall() bool {
	m := v.m
	if m.State&Tracked == 0 || m.Zone != v.r.Zone || v.r.Force || !m.seen.same(&v.key) || m.State&Related != 0 != v.related {
		return false
	}
	if !v.t.arena.sees(m.at) || !(v.asks() && v.look(m.at)) && !v.take(m.at) {
		return false
	}
	v.dir = int(m.dir)
	return true
}

// unknown says that the packet was looked up in this zone before and had no
// connection. It is not looked up again in order to begin one: if another worker
// has begun it meanwhile, the insertion says so, and then it is.
func (v *visit) unknown() bool {
	m := v.m
	if !m.unknown || !v.r.Commit || m.Zone != v.r.Zone || !m.seen.same(&v.key) {
		return false
	}
	m.unknown, m.State = false, 0
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
		if v.seek(&back, reply) {
			return
		}
	}
	v.m.State = 0
	v.seek(&v.key, original)
}

// seek finds and takes the connection of a key: the packet's own, or that of a reply
// to it. One that ends between the two is looked for again: its key may be another's
// by now.
func (v *visit) seek(k *key, of int) bool {
	for {
		h, dir, ok := v.t.findNear(k, v.r.Near, v.now)
		if !ok {
			return false
		}
		dir ^= of
		if v.glance(h, dir) || v.take(h) {
			v.dir = dir
			return true
		}
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

// transport is the packet's transport header and what follows it.
func (v *visit) transport() []byte { return v.f.Bytes()[v.l4:v.end] }

func (v *visit) update() outcome {
	switch {
	case v.gone:
		return outcomeEstablished
	case v.key.proto == packet.ProtoTCP:
		g := readSegment(packet.TCP(v.transport()))
		return v.t.updateTCP(&v.e, v.dir, &g, v.now)
	case v.key.proto == packet.ProtoSCTP:
		return v.t.updateSCTP(&v.e, v.dir, packet.SCTP(v.transport()), v.now)
	}
	return v.t.updateOther(&v.e, v.dir, v.now)
}

// finish applies NAT, mark and label of the connection to the packet, and
// writes what it carries on.
func (v *visit) finish() {
	m := v.m
	m.unknown = m.State == New && !v.known() && v.t.parent == nil
	m.State |= Tracked
	m.Zone = v.r.Zone
	if !v.known() {
		m.Mark, m.Label, m.at = 0, Label{}, handle{}
		m.seen = v.key
		m.orig = v.key
		return
	}
	m.at, m.dir = v.at, uint8(v.dir)
	m.seen = v.key
	if m.State&Invalid == 0 {
		v.nat()
		v.mark()
	}
	m.Mark, m.Label.Hi, m.Label.Lo = v.e.mark, v.e.label.Hi, v.e.label.Lo
	m.orig = v.e.keys[original]
	v.release()
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
	v.e.keys[1-v.dir].reverse(&v.m.seen)
	v.rewrite = !v.m.seen.same(&v.key)
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
	e, r := &v.e, v.r
	e.mark = e.mark&^r.MarkMask | r.Mark&r.MarkMask
	e.label.Hi = e.label.Hi&^r.LabelMask.Hi | r.Label.Hi&r.LabelMask.Hi
	e.label.Lo = e.label.Lo&^r.LabelMask.Lo | r.Label.Lo&r.LabelMask.Lo
}
