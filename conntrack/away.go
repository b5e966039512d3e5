package conntrack

import (
	"sync/atomic"
	"time"
)

// A connection is away while the kernel passes plain packets of it by itself,
// before Track could see them (ports.Shortcuts). Its TCP windows then lie in
// memory that both share: the kernel checks a segment against them and moves
// them as Pass does, and so do Track and Pass for the packets that still come
// here. So a FIN or RST is judged by the windows of all that went before it.
//
// A connection comes back at the first packet that moves it out of the state it
// left in (both sides established, replied to, the same mark and label) and
// when it ends: under its lock, before whoever caused it goes on, Away's first
// word becomes 0, after which the kernel begins to pass no packet.

// Away is the words that are shared for one connection: whether it is away, and
// from word 2 on, for the sender of each direction, next, limit, window and scale
// of a peer (tcp.go). It has no name of its own, so that ports, which does not
// know this package, can have the same.
type Away = [16]atomic.Uint32

// Places in Away.
const (
	awayLive   = 0
	awayNext   = 0 // in a peer's words
	awayLimit  = 1
	awayWindow = 2
	awayScale  = 3
	awayPeers  = 2
	awayPeer   = 4 // words
)

// awayTimeout is the least timeout of a connection that may be away: packets that
// pass are noticed once a second, and who lets it go away brings it back when none
// has passed for half this time. So it never ends while it is away.
const awayTimeout = 30 * time.Second

// ID names a connection for as long as the table lives.
type ID struct{ slot, gen uint32 }

// ID is the connection that was seen, when it is Known.
func (s *Seen) ID() ID { return ID(s.at) }

// Settled says whether a connection was seen of which packets may pass
// elsewhere: known, and replied to.
func (s *Seen) Settled() bool { return s.Known() && s.flags&seenEstablished != 0 }

// Direction is 0 for a packet of the original direction, 1 for a reply.
func (s *Seen) Direction() uint32 { return uint32(s.dir) }

// ShareAway gives the table the memory for connections that are away. settle
// has to return only when the kernel passes no packet of a connection that came
// back before; it is called without locks. ShareAway is called once, before any
// packet.
func (t *Table) ShareAway(all []Away, settle func()) { t.aways, t.settle = all, settle }

// SendAway lets a connection go away under a number, which is a place in the
// shared memory that nobody else uses. It reports false when the connection no
// longer is as it was seen, is not established, or is away already.
func (t *Table) SendAway(s *Seen, no uint32, now int64) bool {
	c := t.arena.at(s.at.slot)
	if !s.Settled() || !c.lock(s.at.gen) {
		return false
	}
	defer c.unlock(s.at.gen)
	var e entry
	c.load(&e)
	if e.expires <= now || !s.holds(c) || e.flags&away != 0 || !e.settled() || t.timeoutOf(&e) < awayTimeout {
		return false
	}
	e.flags |= away
	e.away = no
	w := &t.aways[no]
	if e.keys[original].tcp() {
		for dir := range e.tcp {
			words := w[awayPeers+awayPeer*dir:]
			words[awayScale].Store(uint32(e.tcp[dir].shift(&e.tcp[1-dir])))
			words[awayNext].Store(e.tcp[dir].next)
			words[awayLimit].Store(e.tcp[dir].limit)
			words[awayWindow].Store(e.tcp[dir].window)
		}
	}
	c.store(&e)
	w[awayLive].Store(1)
	return true
}

// Moved notes that packets of a connection that is away under a number have
// passed since it was last called: its windows are taken over and its timeout
// starts anew. It reports false when the connection is not away any more.
func (t *Table) Moved(id ID, no uint32, now int64) bool {
	return t.whileAway(id, no, func(e *entry) { t.touch(e, t.timeoutOf(e), now) })
}

// StopAway makes the kernel pass no more packets of a connection that is away
// under a number.
func (t *Table) StopAway(id ID, no uint32) {
	t.whileAway(id, no, func(*entry) { t.aways[no][awayLive].Store(0) })
}

// BringBack ends what SendAway began: the windows are the table's alone again.
// Before, StopAway must have been called, and have taken effect.
func (t *Table) BringBack(id ID, no uint32) {
	t.whileAway(id, no, func(e *entry) { e.flags &^= away })
}

// whileAway changes a connection that is away under a number. It reports false,
// with nothing done, for another one.
func (t *Table) whileAway(id ID, no uint32, change func(*entry)) bool {
	c := t.arena.at(id.slot)
	if !c.lock(id.gen) {
		return false
	}
	defer c.unlock(id.gen)
	var e entry
	if c.load(&e); e.flags&away == 0 || e.away != no {
		return false
	}
	t.fetch(&e)
	change(&e)
	c.store(&e)
	return true
}

// settled says whether the connection is in the one state in which it may be
// away: packets that Pass lets pass leave it there.
func (e *entry) settled() bool {
	if e.flags&replied == 0 {
		return false
	}
	return !e.keys[original].tcp() || e.tcp[original].state == tcpEstablished && e.tcp[reply].state == tcpEstablished
}

// timeoutOf is the timeout of a settled connection.
func (t *Table) timeoutOf(e *entry) time.Duration {
	if e.keys[original].tcp() {
		return t.timeouts.tcp(tcpEstablished, tcpEstablished)
	}
	return t.timeouts.other(e.keys[original].proto, e.flags)
}

// fetch takes over the windows of a connection that is away. The caller holds
// its lock, or bears it that the windows are of several moments.
func (t *Table) fetch(e *entry) {
	if e.flags&away == 0 || !e.keys[original].tcp() || int(e.away) >= len(t.aways) {
		return
	}
	for dir := range e.tcp {
		e.tcp[dir].fetch(&t.aways[e.away], dir)
	}
}

// keepAway shares what a packet did to a connection that is away, or makes it
// come back. c is as it was before the packet; the caller holds its lock.
func (t *Table) keepAway(c *cell, e *entry) {
	if e.flags&away == 0 || t.aways == nil {
		return
	}
	w := &t.aways[e.away]
	same := uint32(c.mut[1].Load()) == e.mark && c.mut[2].Load() == e.label.Hi && c.mut[3].Load() == e.label.Lo
	if !same || !e.settled() {
		w[awayLive].Store(0)
		e.flags &^= away
		return
	}
	if e.keys[original].tcp() {
		for dir := range e.tcp {
			e.tcp[dir].share(w, dir)
		}
	}
}

// awayOf is the shared words of the connection in a cell whose lock is held, nil
// when it is not away.
func (t *Table) awayOf(c *cell) *Away {
	if c.flags()&away == 0 || t.aways == nil {
		return nil
	}
	return &t.aways[c.mut[8].Load()>>32]
}

// endAway is for a connection that ends; the caller holds its lock.
func (t *Table) endAway(c *cell) {
	if w := t.awayOf(c); w != nil {
		w[awayLive].Store(0)
		t.ended.Store(true)
	}
}

// settleAway waits until no packet passes of the connections that a purge has
// ended.
func (t *Table) settleAway() {
	if t.settle != nil && t.ended.Swap(false) {
		t.settle()
	}
}

// fetch reads a side's windows.
func (p *peer) fetch(w *Away, dir int) {
	words := w[awayPeers+awayPeer*dir:]
	p.next, p.limit, p.window = words[awayNext].Load(), words[awayLimit].Load(), words[awayWindow].Load()
}

// share writes a side's windows, as far as they are ahead of those that the
// kernel has written meanwhile.
func (p *peer) share(w *Away, dir int) {
	words := w[awayPeers+awayPeer*dir:]
	raise(&words[awayNext], p.next, after)
	raise(&words[awayLimit], p.limit, after)
	raise(&words[awayWindow], p.window, func(a, b uint32) bool { return a > b })
}

// raise writes v where it is ahead of what is there.
func raise(to *atomic.Uint32, v uint32, ahead func(a, b uint32) bool) {
	for old := to.Load(); ahead(v, old) && !to.CompareAndSwap(old, v); old = to.Load() {
	}
}

// relearn forgets the windows of a connection that was away when its process was
// killed: gigabytes may have passed since they were last written. The first
// packet of each side tells where it is, as when a connection is picked up.
func (e *entry) relearn() {
	e.flags &^= away
	if !e.keys[original].tcp() {
		return
	}
	e.flags |= pickedUp
	for dir := range e.tcp {
		e.tcp[dir].state = tcpClosed
	}
}
