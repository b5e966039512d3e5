package conntrack

import "github.com/antrail/antrail/packet"

// Looking: a packet that writes nothing to its connection, or nothing but when it
// expires, works on a copy of one moment and takes no lock. Who wants more takes it
// (visit.take).

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
		v.at = h
		return true
	}
	v.e = entry{}
	return false
}

// visitOther is take without the lock, for a packet of a protocol without states that
// only starts its connection's timeout anew (see Table.passOther).
func (v *visit) visitOther(h handle) bool {
	k := &v.key
	if k.proto == packet.ProtoSCTP || v.related || !v.asks() || !v.look(h) {
		return false
	}
	next := v.now + int64(v.t.timeouts.other(k.proto, v.e.flags))
	if v.e.flags&(replied|expendable) == replied &&
		(next == v.e.expires || v.t.arena.at(h.slot).postpone(v.e.expires, next)) {
		return true
	}
	v.at, v.e = handle{}, entry{}
	return false
}
