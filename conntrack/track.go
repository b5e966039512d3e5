package conntrack

import (
	"github.com/antrail/antrail/conntrack/proto"
	"github.com/antrail/antrail/conntrack/store"
	"github.com/antrail/antrail/conntrack/tuple"
	"github.com/antrail/antrail/packet"
)

// The order of work in one ct() action, as Track and run do it:
//
//	1. Read             the packet's tuple, and check its checksums (tuple/read.go). If that
//	                    fails, the packet is +inv+trk.
//	2. findAgain        the connection of a packet that was tracked in this zone before. A
//	                    second ct() does not run the state machine again (D6).
//	3. find             the connection of the tuple, in either direction (store/index.go), and
//	                    advance it by the packet (advance.go).
//	4. setState         by the outcome. The packet may begin another connection instead.
//	5. beginConnection  for a packet without one. The packet is invalid or new. With commit a
//	                    connection is made. Its translation never changes (commit.go, nat.go).
//	6. finish           ct_state, ct_mark and ct_label for later tables.
//	7. translate        the frame, if the action says nat (translate.go).

// visit is one ct() action while it runs.
type visit struct {
	tuple.Packet
	t   *Table
	f   *packet.Frame
	l   *packet.Layers
	m   *Meta
	r   *Request
	now int64

	packet proto.Packet // unless Related

	at      store.Handle // the packet's connection, zero for none
	dir     int
	e       store.Entry   // a copy of it
	outcome proto.Outcome // of its state machine
	locked  bool          // the cell's lock is held
	head    uint64        // of the cell, at the snapshot

	once    bool // only the first reply key is tried
	rewrite bool // the packet gets the connection's other key
}

// Track is one ct() action on the packet in f, with headers at l. It writes the state for later
// tables to m, the packet's own Meta. m is zero before the packet's first ct() and after
// ct_clear. If r.NAT is set, Track may rewrite addresses, ports and checksums in the frame.
// Lengths do not change, so l stays valid. now is the time in nanoseconds, on the clock of
// Config.Now.
//
// A packet that cannot be tracked gets +inv+trk and continues. A packet that must be dropped gets
// a Verdict with a DropReason.
func (t *Table) Track(f *packet.Frame, l *packet.Layers, m *Meta, r *Request, now int64) Verdict {
	var v visit // filled in place, because a literal would be copied
	v.t, v.f, v.l, v.m, v.r, v.now = t, f, l, m, r, now
	if !v.Read(f.Bytes(), l, r.Zone) || !v.verified() {
		*m = Meta{State: Invalid | Tracked, Zone: r.Zone}
		return Verdict{}
	}
	if drop := v.run(); drop != DropNone {
		t.counts.drops[drop].Add(1)
		t.shares.ofPort(t, r.InPort).dropped.Add(1)
		return Verdict{Drop: drop}
	}
	return Verdict{Rewritten: v.translate()}
}

// verified verifies the packet's checksums, once for all its ct() actions.
func (v *visit) verified() bool {
	v.m.sound = v.m.sound || tuple.ChecksumsValid(v.f, v.l)
	return v.m.sound
}

// run is the order of work for a readable packet.
func (v *visit) run() DropReason {
	if v.m.again = v.findAgain(); v.m.again {
		v.finish()
		return DropNone
	}
	v.readPacket()
	for {
		if !v.unknown() {
			v.find()
		}
		if v.known() && (v.forced() || !v.setState()) {
			v.replace() // a translated packet may have the key of a third connection
			continue
		}
		if v.known() {
			v.finish()
			return DropNone
		}
		if drop, again := v.beginConnection(); !again {
			v.finish()
			return drop
		}
	}
}

// readPacket reads the packet for the state machine.
func (v *visit) readPacket() {
	if !v.Related {
		v.packet.Read(v.Key.Proto, v.f.Bytes()[v.L4:v.End])
	}
}

// known says whether the packet has a connection.
func (v *visit) known() bool { return v.at.Slot != 0 }

// replace ends the packet's connection, so that the packet may begin another one. It discards the
// changes of the copy.
func (v *visit) replace() {
	v.t.arena.At(v.at.Slot).Unlock(v.at.Gen)
	v.t.remove(v.at, whatever, v.now)
	v.at, v.e, v.locked = store.Handle{}, store.Entry{}, false
}

// findAgain finds the connection that an earlier ct() in this zone has found for this packet. The
// packet must still have the tuple that this ct() left. Then the state machine does not run
// again, and ct_state stays (D6).
func (v *visit) findAgain() bool {
	m := v.m
	if m.State&Tracked == 0 || m.Zone != v.r.Zone || v.r.Force || !m.seen.Equal(&v.Key) || m.State&Related != 0 != v.Related {
		return false
	}
	if !v.t.arena.Sees(m.at) || !(v.readOnly() && v.snapshot(m.at)) && !v.lock(m.at) {
		return false
	}
	v.dir = int(m.dir)
	return true
}

// unknown says whether an earlier ct() in this zone has found no connection for the packet. Then
// a commit skips the lookup. If another worker has begun the connection meanwhile, the insertion
// fails, and the packet is looked up after that.
func (v *visit) unknown() bool {
	m := v.m
	if !m.unknown || !v.r.Commit || m.Zone != v.r.Zone || !m.seen.Equal(&v.Key) {
		return false
	}
	m.unknown, m.State = false, 0
	return true
}

// find looks the packet up. If the packet was translated in this zone before, its tuple is not a
// key of its connection, but the reversed tuple is. If the tuple was seen in another zone or
// rewritten since, find looks it up as it is.
func (v *visit) find() {
	translated := v.m.State & (SNATed | DNATed)
	v.m.State &= translated
	if translated != 0 && v.m.Zone == v.r.Zone {
		back := v.Key.Reversed()
		if v.seek(&back, tuple.Reply) {
			return
		}
	}
	v.m.State = 0
	v.seek(&v.Key, tuple.Original)
}

// seek finds the connection of a key, and joins it. of is tuple.Reply if the key is that of a
// reply to the packet. If the connection ends in between, seek looks again, because another
// connection may now have the key.
func (v *visit) seek(k *tuple.Key, of int) bool {
	for {
		h, dir, ok := v.t.find(k, v.r.Near, v.now)
		if !ok {
			return false
		}
		dir ^= of
		if v.join(h, dir) {
			v.dir = dir
			return true
		}
	}
}

// forced says whether force replaces the connection. Only a packet of the reply direction causes
// that (CT-23).
func (v *visit) forced() bool { return v.r.Force && v.dir == tuple.Reply && !v.Related }

// setState sets ct_state by the outcome of the state machine. It reports false if the packet
// begins another connection.
func (v *visit) setState() bool {
	var back State
	if v.dir == tuple.Reply {
		back = Reply
	}
	if v.Related {
		v.m.State |= Related | back
		return true
	}
	if v.outcome == proto.OutcomeOutside {
		v.outcome = v.outside()
	}
	switch v.outcome {
	case proto.OutcomeNew:
		v.m.State |= New
	case proto.OutcomeEstablished:
		v.m.State |= Established | back
	case proto.OutcomeInvalid:
		v.m.State = Invalid
	case proto.OutcomeStartOver:
		return false
	}
	return true
}

// outside is the outcome of a TCP segment outside the window (D3).
func (v *visit) outside() proto.Outcome {
	v.t.counts.outOfWindow.Add(1)
	if v.t.strict {
		return proto.OutcomeInvalid
	}
	return v.e.Outcome()
}

// finish writes the packet's Meta: state, mark, label and tuples. It unlocks the connection.
func (v *visit) finish() {
	m := v.m
	m.unknown = m.State == New && !v.known() && v.t.parent == nil
	m.State |= Tracked
	m.Zone = v.r.Zone
	if !v.known() {
		m.Mark, m.Label, m.at = 0, Label{}, store.Handle{}
		m.seen = v.Key
		m.orig = v.Key
		return
	}
	m.at, m.dir = v.at, uint8(v.dir)
	m.seen = v.Key
	if m.State&Invalid == 0 {
		v.nat()
		v.mark()
	}
	m.Mark, m.Label.Hi, m.Label.Lo = v.e.Mark, v.e.Label.Hi, v.e.Label.Lo
	m.orig = v.e.Keys[tuple.Original]
	if v.locked {
		v.t.unlock(v.at, &v.e, v.now)
		v.locked = false
	}
}

// nat decides whether to translate the packet. The action must say nat, the connection must have
// a translation, and this zone must not have translated the packet before. ct_state shows a
// translation even if no byte changes (CT-3).
func (v *visit) nat() {
	bits := natBits(v.e.Flags, v.dir)
	if v.r.NAT == nil || bits == 0 || v.m.State&(SNATed|DNATed) != 0 {
		return
	}
	v.m.State |= bits
	v.e.Keys[1-v.dir].Reverse(&v.m.seen)
	v.rewrite = !v.m.seen.Equal(&v.Key)
}

// natBits is the ct_state bit of the translation in direction dir. A reply to a translated
// destination has its source translated back.
func natBits(flags proto.Flags, dir int) State {
	switch {
	case flags&(store.SourceNAT|store.DestinationNAT) == 0:
		return 0
	case (flags&store.SourceNAT != 0) == (dir == tuple.Original):
		return SNATed
	}
	return DNATed
}

// mark writes the action's mark and label bits to the connection.
func (v *visit) mark() {
	e, r := &v.e, v.r
	e.Mark = e.Mark&^r.MarkMask | r.Mark&r.MarkMask
	e.Label.Hi = e.Label.Hi&^r.LabelMask.Hi | r.Label.Hi&r.LabelMask.Hi
	e.Label.Lo = e.Label.Lo&^r.LabelMask.Lo | r.Label.Lo&r.LabelMask.Lo
}
