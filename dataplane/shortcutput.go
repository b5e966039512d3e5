package dataplane

import (
	"github.com/antrail/antrail/ports"
)

// put makes a shortcut of an offer, if what it was made under still holds and
// there is room.
func (s *shortcuts) put(o *offer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sw := s.sw
	if sw.program.Load() != o.prog || sw.ports.Load() != o.ports || sw.learners.Load() != o.learners {
		s.count(ShortcutLate)
		return
	}
	if sw.lives.Load().wantsKey(&o.key, o.in.no) {
		s.count(ShortcutTraced)
		return
	}
	if at, ok := s.byKey[o.key]; ok {
		if s.takes(at) {
			return
		}
		s.drop(at)
	}
	if !s.fair(o.in) {
		s.count(ShortcutNoRoom)
		return
	}
	at, ok := s.allocate(&s.freeCuts, len(s.cuts))
	if !ok {
		s.count(ShortcutNoRoom)
		return
	}
	if int(at) == len(s.cuts) {
		s.cuts = append(s.cuts, cut{})
	}
	conn, ok := s.connOf(o)
	if !ok {
		s.freeCuts = append(s.freeCuts, at)
		s.endUnused()
		return
	}
	s.fill(at, conn, o)
	if err := s.kernel.Put(&o.key, at); err != nil {
		s.drop(at)
		s.endUnused()
		s.count(ShortcutNoRoom)
		return
	}
	s.count(ShortcutPut)
}

// takes says whether packets can take the shortcut at a place.
func (s *shortcuts) takes(at uint32) bool {
	return s.kernel.Shortcut(at).Generation.Load() == s.generation && s.away(s.cuts[at].conn)
}

// away says whether a connection still is away.
func (s *shortcuts) away(conn uint32) bool { return s.kernel.Conns()[conn][0].Load() != 0 }

// fair says whether a port may have one more: from half full on, each may have an
// equal part.
func (s *shortcuts) fair(in *switchPort) bool {
	room := s.kernel.Room()
	if len(s.byKey) < room/2 {
		return true
	}
	holders := 0
	for _, p := range s.sw.ports.Load().list {
		if p.cuts > 0 {
			holders++
		}
	}
	return in.cuts < room/max(1, holders)
}

// allocate is a free place: one that was used before, or the next. When there is
// none, what packets under way may still use is waited for.
func (s *shortcuts) allocate(free *[]uint32, used int) (uint32, bool) {
	if len(*free) == 0 && used == s.kernel.Room() {
		s.release()
	}
	if n := len(*free); n > 0 {
		at := (*free)[n-1]
		*free = (*free)[:n-1]
		return at, true
	}
	if used == s.kernel.Room() {
		return 0, false
	}
	return uint32(used), true
}

// connOf is the place of an offer's connection, which goes away if it has not
// yet.
func (s *shortcuts) connOf(o *offer) (uint32, bool) {
	id := o.seen.ID()
	if at, ok := s.byConn[id]; ok {
		if s.away(at) {
			return at, true
		}
		s.end(at)
	}
	at, ok := s.allocate(&s.freeConns, len(s.conns))
	if !ok {
		s.count(ShortcutNoRoom)
		return 0, false
	}
	if int(at) == len(s.conns) {
		s.conns = append(s.conns, awayConn{})
	}
	if !s.sw.conntrack.SendAway(&o.seen, at, s.sw.clock()) {
		s.freeConns = append(s.freeConns, at)
		s.count(ShortcutLate)
		return 0, false
	}
	s.conns[at] = awayConn{id: id}
	s.byConn[id] = at
	return at, true
}

// fill makes the place a shortcut, to which no key leads yet.
func (s *shortcuts) fill(at, conn uint32, o *offer) {
	s.cuts[at] = cut{used: true, key: o.key, conn: conn, path: o.path, in: o.in, out: o.path.out, last: s.sw.clock()}
	s.byKey[o.key] = at
	s.conns[conn].cuts = append(s.conns[conn].cuts, at)
	o.in.cuts++
	s.current++

	to, ch := s.kernel.Shortcut(at), &o.change
	to.Packets.Store(0)
	to.Bytes.Store(0)
	to.Conn, to.Dir = conn, o.seen.Direction()
	to.Out, to.MaxLen = o.path.out.shortcut, uint32(ports.MaxFrame(o.path.out.mtu))
	to.Parts = ch.shortcutParts()
	to.IPSum, to.PseudoSum, to.PortSum = uint32(ch.ipSum), uint32(ch.pseudoSum), uint32(ch.portSum)
	to.TTL, to.L4, to.Checksum = ch.ttl, uint8(o.layers.L4), uint8(checksumAt(o.layers.Proto))
	to.Eth, to.IP, to.Ports, to.Addrs = ch.eth, ch.ip, ch.ports, ch.addrs
	to.Generation.Store(s.generation)
	s.kernel.Generation().Store(s.generation)
}

// shortcutParts is the change's parts in the kernel's words.
func (ch *change) shortcutParts() (parts ports.ShortcutParts) {
	for _, p := range []struct {
		ours   changed
		theirs ports.ShortcutParts
	}{
		{changedEth, ports.ShortcutEth}, {changedIP, ports.ShortcutIP},
		{changedAddrs, ports.ShortcutAddrs}, {changedPorts, ports.ShortcutPorts},
	} {
		if ch.parts&p.ours != 0 {
			parts |= p.theirs
		}
	}
	return parts
}
