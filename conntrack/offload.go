package conntrack

import (
	"sync/atomic"
	"time"

	"github.com/antrail/antrail/conntrack/proto"
	"github.com/antrail/antrail/conntrack/store"
	"github.com/antrail/antrail/conntrack/tuple"
	"github.com/antrail/antrail/packet"
)

// A connection is offloaded while the kernel forwards its plain packets (ports.OffloadEntry).
// Track and Pass do not see these packets.
//
//  1. The TCP windows of an offloaded connection lie in memory that the table and the kernel
//     share. The kernel checks segments against them and advances them as Pass does. So Track
//     checks a FIN or RST against the windows of all segments before it.
//  2. A connection is offloaded only while it is settled. TCP is settled if both sides are
//     established, UDP always. The first packet that changes its mark or label, or ends this
//     state, ends the offload. The first reply to UDP does, too, because packets are new before
//     it and established after it.
//  3. An offload ends under the connection's lock: the first word of OffloadWords becomes 0.
//     After that the kernel forwards no further packet. So all later packets come to Track after
//     the packet that has ended the offload.
//  4. That packet may restart no timeout, like an ICMP error. Then the kernel's last packets must
//     restart it. So the connection keeps its flag until EndOffload, as after StopOffload.

// OffloadWords is the shared words of one connection. The first is 1 while the connection is
// offloaded. From word 2 on they are next, limit, window and scale of the sender of each
// direction (proto/tcp.go). It is an alias, so that package ports can use the type without
// importing this package.
type OffloadWords = [16]atomic.Uint32

// Indexes into OffloadWords.
const (
	offloadLive   = 0
	offloadNext   = 0 // in a peer's words
	offloadLimit  = 1
	offloadWindow = 2
	offloadScale  = 3
	offloadPeers  = 2
	offloadPeer   = 4 // words
)

// minOffloadTimeout is the least timeout of a connection that may be offloaded. The caller
// notices the kernel's packets once a second, and ends an offload after half this time without a
// packet. So no connection expires while it is offloaded.
const minOffloadTimeout = 30 * time.Second

// ID names a connection during the table's lifetime.
type ID struct{ slot, gen uint32 }

// ID is the seen connection, if it is Known.
func (s *Seen) ID() ID { return ID{slot: s.at.Slot, gen: s.at.Gen} }

// Answered says whether a reply was seen.
func (s *Seen) Answered() bool { return s.flags&seenEstablished != 0 }

// Settled says whether the seen connection, which is of a protocol, may be offloaded.
func (s *Seen) Settled(protocol uint8) bool {
	return s.Known() && (s.Answered() || protocol == packet.ProtoUDP)
}

// Offloaded says whether the kernel forwards packets of the seen connection. The connection may
// have ended since.
func (t *Table) Offloaded(s *Seen) bool {
	c := t.arena.At(s.at.Slot)
	return s.Known() && uint32(c.Head()) == s.at.Gen && c.Flags()&store.Offloaded != 0
}

// Direction is 0 for a packet of the original direction, 1 for a reply.
func (s *Seen) Direction() uint32 { return uint32(s.dir) }

// ShareOffload sets the memory for offloaded connections. settle must return only when the
// kernel forwards no more packets of connections whose offload has ended. The table calls it
// without locks. The caller calls ShareOffload once, before any packet.
func (t *Table) ShareOffload(all []OffloadWords, settle func()) { t.offloads, t.settle = all, settle }

// Offload begins to offload a connection. no is an index into the shared memory that no other
// connection uses. Offload reports false if the connection has changed since it was seen, is not
// settled, or is already offloaded.
func (t *Table) Offload(s *Seen, no uint32, now int64) bool {
	var e store.Entry
	if !s.Known() || !t.lock(s.at, &e, now) {
		return false
	}
	c := t.arena.At(s.at.Slot)
	defer c.Unlock(s.at.Gen)
	if !s.matches(c.Says()) || e.Flags&store.Offloaded != 0 || !settled(&e) || t.timeoutOf(&e) < minOffloadTimeout {
		return false
	}
	e.Flags |= store.Offloaded
	e.OffloadSlot = no
	w := &t.offloads[no]
	if e.Keys[tuple.Original].TCP() {
		for dir := range e.TCP {
			words := w[offloadPeers+offloadPeer*dir:]
			words[offloadScale].Store(uint32(e.TCP[dir].Shift(&e.TCP[1-dir])))
			words[offloadNext].Store(e.TCP[dir].Next)
			words[offloadLimit].Store(e.TCP[dir].Limit)
			words[offloadWindow].Store(e.TCP[dir].Window)
		}
	}
	c.Store(&e)
	w[offloadLive].Store(1)
	return true
}

// TouchOffloaded copies the windows of an offloaded connection from the shared memory, and
// restarts its timeout. The caller calls it if the kernel has forwarded packets since the last
// call. It reports false if the connection is no longer offloaded at index no.
func (t *Table) TouchOffloaded(id ID, no uint32, now int64) bool {
	return t.whileOffloaded(id, no, func(e *store.Entry) { e.Touch(t.timeoutOf(e), now) })
}

// StopOffload makes the kernel forward no more packets of a connection that is offloaded at index
// no.
func (t *Table) StopOffload(id ID, no uint32) {
	t.whileOffloaded(id, no, func(*store.Entry) { t.offloads[no][offloadLive].Store(0) })
}

// EndOffload ends an offload: the windows belong to the table alone again. The caller must
// have called StopOffload before, and waited until it has taken effect.
func (t *Table) EndOffload(id ID, no uint32) {
	t.whileOffloaded(id, no, func(e *store.Entry) { e.Flags &^= store.Offloaded })
}

// whileOffloaded changes a connection that is offloaded at index no. For any other connection it
// changes nothing and reports false.
func (t *Table) whileOffloaded(id ID, no uint32, change func(*store.Entry)) bool {
	c := t.arena.At(id.slot)
	if !c.LockIf(id.gen) {
		return false
	}
	defer c.Unlock(id.gen)
	var e store.Entry
	if c.Load(&e); e.Flags&store.Offloaded == 0 || e.OffloadSlot != no {
		return false
	}
	t.fetchWindows(&e)
	change(&e)
	c.Store(&e)
	return true
}

// settled says whether the connection is in a state in which it may be offloaded. Pass
// never changes that state.
func settled(e *store.Entry) bool {
	answered := e.Flags&proto.Replied != 0
	switch e.Keys[tuple.Original].Proto {
	case packet.ProtoTCP:
		return answered && e.TCP[tuple.Original].State == proto.TCPEstablished && e.TCP[tuple.Reply].State == proto.TCPEstablished
	case packet.ProtoUDP:
		return true
	}
	return answered
}

// timeoutOf is the timeout of a settled connection.
func (t *Table) timeoutOf(e *store.Entry) time.Duration {
	if e.Keys[tuple.Original].TCP() {
		return t.machine.Timeouts.TCPEstablished
	}
	return t.machine.Timeouts.Other(e.Keys[tuple.Original].Proto, e.Flags)
}

// fetchWindows copies the windows of an offloaded connection to e. The caller holds the cell's
// lock, or accepts a torn read of the windows.
func (t *Table) fetchWindows(e *store.Entry) {
	if e.Flags&store.Offloaded == 0 || !e.Keys[tuple.Original].TCP() || int(e.OffloadSlot) >= len(t.offloads) {
		return
	}
	for dir := range e.TCP {
		fetchPeer(&e.TCP[dir], &t.offloads[e.OffloadSlot], dir)
	}
}

// updateOffload writes the windows of an offloaded connection to the shared memory, after a
// packet has changed e. Or it ends the offload (rule 2). c has the state before the packet. The
// caller holds the cell's lock.
func (t *Table) updateOffload(c *store.Cell, e *store.Entry) {
	if e.Flags&store.Offloaded == 0 || t.offloads == nil {
		return
	}
	w := &t.offloads[e.OffloadSlot]
	word, hi, lo := c.Says()
	replied := (proto.Flags(word>>32)^e.Flags)&proto.Replied != 0
	changed := replied || !settled(e)
	if changed || uint32(word) != e.Mark || hi != e.Label.Hi || lo != e.Label.Lo {
		w[offloadLive].Store(0)
		if changed || e.Expires != c.Expires() { // otherwise by rule 4
			e.Flags &^= store.Offloaded
			return
		}
	}
	if e.Keys[tuple.Original].TCP() {
		for dir := range e.TCP {
			sharePeer(&e.TCP[dir], w, dir)
		}
	}
}

// withdrawOffload ends the offload of a connection that ends. The caller holds the cell's lock.
func (t *Table) withdrawOffload(c *store.Cell) {
	if c.Flags()&store.Offloaded != 0 && t.offloads != nil {
		t.offloads[c.OffloadSlot()][offloadLive].Store(0)
		t.ended.Store(true)
	}
}

// settleOffload waits until the kernel forwards no more packets of connections that a purge
// has ended.
func (t *Table) settleOffload() {
	if t.settle != nil && t.ended.Swap(false) {
		t.settle()
	}
}

// fetchPeer reads a side's windows.
func fetchPeer(p *proto.Peer, w *OffloadWords, dir int) {
	words := w[offloadPeers+offloadPeer*dir:]
	p.Next, p.Limit, p.Window = words[offloadNext].Load(), words[offloadLimit].Load(), words[offloadWindow].Load()
}

// sharePeer writes a side's windows to the shared memory. It never lowers a number that the
// kernel has raised meanwhile.
func sharePeer(p *proto.Peer, w *OffloadWords, dir int) {
	words := w[offloadPeers+offloadPeer*dir:]
	raise(&words[offloadNext], p.Next, proto.After)
	raise(&words[offloadLimit], p.Limit, proto.After)
	raise(&words[offloadWindow], p.Window, func(a, b uint32) bool { return a > b })
}

// raise writes v if it is ahead of the word's value.
func raise(to *atomic.Uint32, v uint32, ahead func(a, b uint32) bool) {
	for old := to.Load(); ahead(v, old) && !to.CompareAndSwap(old, v); old = to.Load() {
	}
}

// forgetWindows clears the windows of a connection that was offloaded when its process was
// killed. The kernel may have forwarded gigabytes since they were last written.
func forgetWindows(e *store.Entry) {
	e.Flags &^= store.Offloaded
	if !e.Keys[tuple.Original].TCP() {
		return
	}
	e.ForgetWindows()
}
