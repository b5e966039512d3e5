package conntrack

import "github.com/antrail/antrail/packet"

// Passing: what a ct() does to most packets of a connection is to say the same
// as before, move the connection's windows and start its timeout anew. Whoever
// remembers what was said (Seen) can have that done by Pass, without a lookup.
//
// Pass does what Track would have done, or nothing: it refuses where Track would
// say something else, change a state, count or make something. And it may be
// followed by Track for the same packet: done twice, it is as done once.

// Seen is what one ct() said about a packet: which connection it is of, or that
// it is of none. It holds no pointers; the connection may be long gone.
type Seen struct {
	at    handle
	label Label
	mark  uint32
	zone  uint16
	dir   uint8
	flags seenFlags
}

type seenFlags uint8

const (
	seenEstablished seenFlags = 1 << iota
	seenAgain                 // the packet had met the connection in this zone before
	seenNone                  // there was no connection
)

// Seen is what the last ct() said. It is false when Pass cannot say it: the
// packet was not readable or sound, is an ICMP error, or its connection refused
// it.
func (m *Meta) Seen() (Seen, bool) {
	if !m.sound || m.State&Related != 0 {
		return Seen{}, false
	}
	if m.at.slot == 0 {
		return Seen{zone: m.Zone, flags: seenNone}, true
	}
	if m.State&Invalid != 0 || m.State&(New|Established) == 0 {
		return Seen{}, false
	}
	s := Seen{at: m.at, label: m.Label, mark: m.Mark, zone: m.Zone, dir: m.dir}
	if m.State&Established != 0 {
		s.flags |= seenEstablished
	}
	if m.again {
		s.flags |= seenAgain
	}
	return s, true
}

// Follows says how s stands to what an earlier ct() said to the same packet.
// Covered: Pass for the earlier one has done all for this one. Apart: it needs
// one of its own. Neither: what is said here cannot be told from the connection
// alone.
func (s *Seen) Follows(earlier *Seen) (covered, apart bool) {
	if s.zone != earlier.zone {
		return false, true
	}
	if (s.flags|earlier.flags)&seenNone != 0 {
		return s.flags == earlier.flags, false
	}
	covered = s.flags&seenAgain != 0 && s.at == earlier.at && s.mark == earlier.mark && s.label == earlier.label
	return covered, false
}

// Began says that the last ct() began a connection, where an earlier one of the
// same packet had said s: that there is none.
func (m *Meta) Began(s *Seen) bool {
	return s.flags&seenNone != 0 && m.at.slot != 0 && m.Zone == s.zone
}

// AsRequested says that the last ct(), which found or began a connection, says of it
// what it would of one that it has just begun, and has left the packet so: without a
// translation, or with the one there is (NAT.single).
func (m *Meta) AsRequested(r *Request) bool {
	state, to := New|Tracked, m.orig
	if r.NAT != nil {
		if !r.NAT.single(&m.orig) {
			return false
		}
		state, to.dst, to.dstPort = New|Tracked|DNATed, addressOf(r.NAT.AddrMin), r.NAT.PortMin
	}
	return m.State == state && m.seen.same(&to) && m.Mark == r.Mark&r.MarkMask &&
		m.Label == Label{r.Label.Hi & r.LabelMask.Hi, r.Label.Lo & r.LabelMask.Lo}
}

// Known says whether there was a connection. When there was none, the packet
// must show Pass the tuple that it showed to that ct().
func (s *Seen) Known() bool { return s.flags&seenNone == 0 }

// Plain says whether a protocol's packet with such TCP flags can Pass.
func Plain(proto uint8, tcpFlags uint16) bool {
	switch proto {
	case packet.ProtoTCP:
		return tcpFlags&packet.TCPAck != 0 && tcpFlags&(packet.TCPSyn|packet.TCPFin|packet.TCPRst) == 0
	case packet.ProtoUDP, packet.ProtoICMP, packet.ProtoICMPv6:
		return true
	}
	return false
}

// Passing is a packet on its way through several Pass calls.
type Passing struct {
	frame   *packet.Frame
	layers  *packet.Layers
	proto   uint8
	segment segment // of TCP
	key     key     // in no zone, once keyed
	keyed   bool
}

// Read reads a packet that may Pass. It reports false when its checksums are
// wrong. The packet must be whole and its transport header there; where it has
// connections it must be Plain.
func (p *Passing) Read(f *packet.Frame, l *packet.Layers) bool {
	if !sound(f, l) {
		return false
	}
	p.frame, p.layers, p.proto, p.keyed = f, l, l.Proto, false
	if p.proto == packet.ProtoTCP {
		p.segment = readSegment(packet.TCP(f.Bytes()[l.L4:l.End]))
	}
	return true
}

// Pass is a ct() that says what s holds, on the packet in p. It reports false,
// with nothing done, when it would not say that, or would do more than move
// windows and timeout.
func (t *Table) Pass(s *Seen, p *Passing, now int64) bool {
	switch {
	case !s.Known():
		return t.unknown(p, s.zone)
	case p.proto == packet.ProtoTCP:
		return t.passTCP(s, &p.segment, now)
	}
	return t.passOther(s, p.proto, now)
}

// passTries is how often a cell is looked at that others change: for longer than its
// lock is held, unless who holds it has lost the processor.
const passTries = 64

// passOther is Pass without a lock, for a protocol without states, of which a packet
// starts its connection's timeout anew. That nobody has moved the expiry between its
// being read and being moved says that the connection has not ended, and that what was
// seen of it was so before whatever another worker may be doing to it by now. Nor does
// it wait for one.
func (t *Table) passOther(s *Seen, proto uint8, now int64) bool {
	c := t.arena.at(s.at.slot)
	for range passTries {
		head := c.head.Load()
		if uint32(head) != s.at.gen {
			return false
		}
		expires := c.expires()
		ok := expires > now && s.holds(c)
		next := now + int64(t.timeouts.other(proto, c.flags()))
		switch {
		case head&locked != 0 || c.head.Load() != head: // not of one moment
		case !ok:
			return false
		case expires == next || c.postpone(expires, next):
			return true
		}
	}
	return false
}

// passTCP is the same for a segment, which moves its direction's course first: of a
// connection that ends between the two, that is nobody's any more.
func (t *Table) passTCP(s *Seen, g *segment, now int64) bool {
	c := t.arena.at(s.at.slot)
	for range passTries {
		head := c.head.Load()
		if uint32(head) != s.at.gen {
			return false
		}
		expires := c.expires()
		ok, shared := expires > now && s.holds(c), c.flags()&away != 0
		b := both{head: head}
		b.load(c, int(s.dir))
		if head&locked != 0 || c.head.Load() != head {
			continue // not of one moment
		}
		switch {
		case !ok:
			return false
		case shared:
			return t.passLocked(s, g, now)
		}
		switch t.slide(c, &b, g, expires, now) {
		case slid:
			return true
		case stopped:
			return false
		case widened:
			return t.passLocked(s, g, now)
		}
	}
	return false
}

// passLocked is passTCP with the lock: where the largest window of a side moves, and
// where the windows are the kernel's too.
func (t *Table) passLocked(s *Seen, g *segment, now int64) bool {
	c := t.arena.at(s.at.slot)
	if !c.lock(s.at.gen) {
		return false
	}
	defer c.unlock(s.at.gen)
	if c.expires() <= now || !s.holds(c) {
		return false
	}
	var e entry
	c.load(&e)
	t.fetch(&e)
	src, dst := &e.tcp[s.dir], &e.tcp[1-s.dir]
	if !t.follow(src, dst, g) {
		return false
	}
	t.touch(&e, t.timeouts.tcp(src.state, dst.state), now)
	t.keepAway(c, &e)
	c.store(&e)
	return true
}

// unknown says whether the packet has no connection in a zone, not even one
// whose time has passed and that Track would remove.
func (t *Table) unknown(p *Passing, zone uint16) bool {
	if !p.keyed {
		var shown shown
		p.keyed = shown.read(p.frame.Bytes(), p.layers, 0)
		p.key = shown.key
	}
	k := p.key
	k.zone = zone
	w := k.words()
	_, _, found := t.index.find(t.arena, t.chain(&w, nil), &w)
	return p.keyed && !found
}

// holds says whether the connection still shows what was said of it: mark, label and
// whether it was replied to. The caller holds its lock, or sees to it that no other
// does meanwhile.
func (s *Seen) holds(c *cell) bool {
	word := c.mut[1].Load()
	seen := entryFlags(word>>32)&replied != 0
	return uint32(word) == s.mark &&
		seen == (s.flags&seenEstablished != 0) && (seen || s.dir == original) &&
		c.mut[2].Load() == s.label.Hi && c.mut[3].Load() == s.label.Lo
}
