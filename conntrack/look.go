package conntrack

import "github.com/antrail/antrail/packet"

// Looking: a packet that writes nothing to its connection, or no more than how far it
// has come and when it expires, works on a copy of one moment and takes no lock. Who
// wants more takes it (visit.take).

// asks says whether the action asks for nothing to be written to a connection.
func (v *visit) asks() bool {
	r := v.r
	return !r.Force && r.MarkMask == 0 && r.LabelMask == Label{}
}

// look copies a connection as it is at one moment, without its lock. It reports false,
// with nothing copied, when its time has passed, and when another worker is changing it.
func (v *visit) look(h handle) bool {
	c := v.t.arena.at(h.slot)
	head := c.head.Load()
	if uint32(head) != h.gen || head&locked != 0 {
		return false
	}
	c.load(&v.e)
	v.t.fetch(&v.e)
	if v.e.expires > v.now && c.head.Load() == head {
		v.at, v.head = h, head
		return true
	}
	v.e = entry{}
	return false
}

// glance is take without the lock, for a packet of an answered connection that moves no
// more than its direction's course and the expiry. It reports false, with nothing done,
// for any other, and where another worker is changing the connection.
func (v *visit) glance(h handle, dir int) bool {
	c := v.t.arena.at(h.slot)
	if v.related || !v.asks() || !c.flags().kept() || !v.look(h) {
		return false
	}
	if v.gone = v.e.flags.kept() && v.moves(c, dir); v.gone {
		return true
	}
	v.at, v.e = handle{}, entry{}
	return false
}

// kept says whether a connection was answered and is in no list of those that may be
// evicted.
func (f entryFlags) kept() bool { return f&(replied|expendable) == replied }

// moves moves the connection in a cell by a packet, as far as glance may, from what v.e
// says of it.
func (v *visit) moves(c *cell, dir int) bool {
	e, next := &v.e, int64(0)
	switch v.key.proto {
	case packet.ProtoTCP:
		g := readSegment(packet.TCP(v.transport()))
		b := both{e.tcp[dir], e.tcp[1-dir], dir, v.head, courseOf(&e.tcp[dir], &e.tcp[1-dir])}
		return Plain(packet.ProtoTCP, g.flags) && e.flags&away == 0 && v.t.slide(c, &b, &g, e.expires, v.now) == slid
	case packet.ProtoSCTP:
		after := *e
		if v.t.updateSCTP(&after, dir, packet.SCTP(v.transport()), v.now) != outcomeEstablished || after.state != e.state || after.tag != e.tag {
			return false
		}
		next = after.expires
	default:
		next = v.now + int64(v.t.timeouts.other(v.key.proto, e.flags))
	}
	return next == e.expires || c.postpone(e.expires, next)
}
