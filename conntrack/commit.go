package conntrack

import (
	"time"

	"github.com/antrail/antrail/packet"
)

// begin is a packet without a connection: invalid when it cannot begin one,
// else new, and made an entry when the action commits. Only a packet that must
// not go on gets a reason. It reports again when another worker has made the
// connection meanwhile: then the packet belongs to that one (CT-30).
func (v *visit) begin() (drop DropReason, again bool) {
	if v.serverFirst() {
		return DropServerFirst, false
	}
	v.m.State = New
	if v.related || !v.opens() {
		v.m.State = Invalid
		return DropNone, false
	}
	if !v.r.Commit {
		return DropNone, false
	}
	return v.commit()
}

// Begin is a ct() that finds no connection of the packet in f, whose headers lie where l
// says, and a ct(commit) behind it in the same zone, which r is: without force, and
// without nat or with one of a single outcome (NAT.single), by which the packet is not
// rewritten. It reports false when the packet has a connection, may not begin one or is
// not readable, or when that outcome is another connection's; then there is none more
// than before, and Track tells why. What m holds is of no use before or after.
func (t *Table) Begin(f *packet.Frame, l *packet.Layers, m *Meta, r *Request, now int64) bool {
	*m = Meta{}
	var v visit
	v.t, v.f, v.l, v.m, v.r, v.now, v.once = t, f, l, m, r, now, true
	if !v.read(f.Bytes(), l, r.Zone) || !sound(f, l) {
		return false
	}
	if _, _, known := t.findNear(&v.key, r.Near, now); known || !v.fits() {
		return false
	}
	if v.begin(); !v.known() {
		if m.counted {
			t.shares.limit.giveBack(t.shares.of(t, r.InPort))
		}
		return false
	}
	return true
}

// fits says whether there is room for the packet's connection. Where an old one is to
// go for it (admit), its reply key must be free too, so that none goes for nothing.
func (v *visit) fits() bool {
	t := v.t
	z, total, most := t.zone(v.key.zone), t.limits.total.Load()+1, t.limits.max.Load()
	if total > most || z.full(z.count.Load()+1, t.limits.byDefault.Load()) {
		return false
	}
	if !crowded(total, most) {
		return true
	}
	var back key
	t.chooseReply(&v.key, &back, v.r.NAT, false, v.now)
	w := back.words()
	_, _, found := t.index.find(t.arena, t.chain(&w, nil), &w) // or one whose time has passed: it goes after room was made
	return !found
}

// opens says whether the packet may begin a connection of its protocol.
func (v *visit) opens() bool {
	switch v.key.proto {
	case packet.ProtoTCP:
		g := readSegment(packet.TCP(v.transport()))
		return g.opens()
	case packet.ProtoSCTP:
		return opensSCTP(packet.SCTP(v.transport()))
	case packet.ProtoICMP, packet.ProtoICMPv6:
		return icmpRequest(v.key.proto, v.key.icmpType())
	}
	return true
}

// commit makes the packet's connection: rate, limits, NAT, then both keys in
// one step.
func (v *visit) commit() (drop DropReason, again bool) {
	t := v.t
	from := t.shares.of(t, v.r.InPort)
	if !v.m.counted && !t.shares.limit.take(from, v.now) {
		return DropNewRate, false
	}
	v.m.counted = true
	if drop := t.admit(v.key.zone, v.r.InPort, v.now); drop != DropNone {
		return drop, false
	}
	made, drop := v.make()
	if made == inserted {
		t.counts.created.Add(1)
		return DropNone, false
	}
	t.forget(v.key.zone, v.r.InPort)
	v.e = entry{}
	if made == forwardTaken {
		t.counts.raced.Add(1)
		return DropNone, true
	}
	return drop, false
}

// make chooses the reply key and inserts the connection. A reply key that is
// free when it is inserted *is* the port that NAT allocates: when another
// worker was faster, the next one is chosen (CT-30).
func (v *visit) make() (insertion, DropReason) {
	t := v.t
	for again := false; ; again = true { // v.e is blank, or as it was when its reply key was taken
		if again && v.once {
			if t.taken(&v.e.keys[reply], v.now) {
				return replyTaken, DropNATExhausted
			}
			again = false // it was that of a connection whose time has passed
		}
		flags, ok := t.chooseReply(&v.key, &v.e.keys[reply], v.r.NAT, again, v.now)
		if !ok {
			return replyTaken, DropNATExhausted
		}
		v.e.keys[original] = v.key
		v.e.port, v.e.flags = v.r.InPort, flags
		t.touch(&v.e, v.open(), v.now)
		v.mark()
		h, made := t.insert(&v.e, v.r.Near, v.now)
		switch made {
		case inserted:
			v.at, v.dir = h, original
			if flags != 0 && !again {
				t.counts.searched(1)
			}
			return inserted, DropNone
		case forwardTaken:
			return forwardTaken, DropNone
		case chainFull:
			return chainFull, DropChainFull
		case noCell:
			return noCell, DropTableFull
		}
	}
}

// open takes the first packet into the protocol's state and says how long to
// wait for the next.
func (v *visit) open() time.Duration {
	t := &v.t.timeouts
	switch v.key.proto {
	case packet.ProtoTCP:
		g := readSegment(packet.TCP(v.transport()))
		v.e.openTCP(&g)
		return t.TCPSynSent
	case packet.ProtoSCTP:
		v.e.openSCTP(packet.SCTP(v.transport()))
		return t.sctp(v.e.state)
	}
	return t.other(v.key.proto, v.e.flags)
}
