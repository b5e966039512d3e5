package conntrack

import (
	"github.com/antrail/antrail/conntrack/proto"
	"github.com/antrail/antrail/conntrack/store"
)

// How a packet advances its connection. Pass and Track do it in the same three steps:
//
//  1. Copy the state, with the cell's lock or without it (store.Cell, rules 2 and 3).
//  2. Run the state machine on the copy (advance).
//  3. Write the copy back: without the lock by Cell.Commit, with it by Cell.Store.
//
// Pass copies nothing for a protocol without states: there only the expiry changes (restart).
//
// The rules:
//
//  1. Without the lock a packet writes only its direction's sequence state and the expiry
//     (proto.Progress). All other words change together with each other, under the lock.
//  2. If another worker has changed the connection since step 1, Commit fails. Then the
//     packet starts again at step 1. Its copy is out of date.
//  3. Pass never waits for a lock, except to raise a side's largest window. After
//     passTries copies it refuses, and the packet walks.
//  4. Track tries once without the lock, then takes it.
//  5. An offloaded connection needs the lock. Its windows lie in memory that the kernel
//     writes too, and fetch and share have to see one moment of the connection.

// passTries is how many copies Pass takes of a cell that other workers change. That takes
// longer than a worker holds the lock, unless the worker has lost the processor.
const passTries = 64

// advance runs the state machine for a packet in direction dir of the connection in cell c.
// s is a copy of the connection's state. head is the cell's head at that moment.
//
// If head is locked, the caller holds the lock and stores s. Otherwise advance commits s.
// Then committed is false if the change needs the lock, or if another worker was faster.
func (t *Table) advance(c *store.Cell, head uint64, s *proto.State, p *proto.Packet, dir int, now int64) (
	outcome proto.Outcome, change proto.Change, committed bool,
) {
	from := s.Progress(p.Protocol, dir)
	outcome, change = t.machine.Update(s, p, dir, now)
	switch {
	case head&store.Locked != 0:
		return outcome, change, true
	case change > proto.ChangedSequence:
		return outcome, change, false
	}
	return outcome, change, c.Commit(head, dir, from, s.Progress(p.Protocol, dir))
}

// lock locks a connection and copies it to e. It reports false if the connection has ended.
func (t *Table) lock(h store.Handle, e *store.Entry, now int64) bool {
	c := t.arena.At(h.Slot)
	if !c.LockIf(h.Gen) {
		return false
	}
	if c.Expires() <= now {
		c.Unlock(h.Gen)
		return false
	}
	c.Load(e)
	t.fetchWindows(e)
	return true
}

// unlock stores a locked connection's changes, and unlocks it.
func (t *Table) unlock(h store.Handle, e *store.Entry, now int64) {
	c := t.arena.At(h.Slot)
	t.relist(e, h.Slot, now)
	t.updateOffload(c, e)
	c.Store(e)
	c.Unlock(h.Gen)
}

// lock locks the packet's connection.
func (v *visit) lock(h store.Handle) bool {
	v.locked = v.t.lock(h, &v.e, v.now)
	if v.locked {
		v.at = h
	}
	return v.locked
}

// snapshot copies the packet's connection without the lock. It reports false, with nothing
// copied, if the connection has ended or another worker is changing it.
func (v *visit) snapshot(h store.Handle) bool {
	c := v.t.arena.At(h.Slot)
	v.head = c.Head()
	if uint32(v.head) != h.Gen || v.head&store.Locked != 0 {
		return false
	}
	c.Load(&v.e)
	v.t.fetchWindows(&v.e)
	if v.e.Expires > v.now && c.Head() == v.head {
		v.at = h
		return true
	}
	v.e = store.Entry{}
	return false
}

// readOnly says whether the action writes nothing to a connection.
func (v *visit) readOnly() bool {
	r := v.r
	return !r.Force && r.MarkMask == 0 && r.LabelMask == Label{}
}

// join finds the packet's connection, and advances it by the packet. It reports false if the
// connection has ended. The connection stays locked if the packet or the action changes more than
// Commit can write.
func (v *visit) join(h store.Handle, dir int) bool {
	c := v.t.arena.At(h.Slot)
	// On connections that are not steady, most packets change the state.
	if v.readOnly() && steady(c.Flags()) && v.snapshot(h) {
		if v.Related || v.e.Flags&store.Offloaded == 0 && v.advance(c, v.head, dir) {
			return true
		}
		v.at, v.e = store.Handle{}, store.Entry{}
	}
	if !v.lock(h) {
		return false
	}
	if !v.Related {
		v.advance(c, store.Locked, dir)
	}
	return true
}

// advance advances the copy of the packet's connection.
func (v *visit) advance(c *store.Cell, head uint64, dir int) (committed bool) {
	v.outcome, _, committed = v.t.advance(c, head, &v.e.State, &v.packet, dir, v.now)
	return committed
}

// steady says whether a connection was answered and is not in a list of evictable ones.
func steady(f proto.Flags) bool { return f&(proto.Replied|store.Expendable) == proto.Replied }
