package conntrack

import (
	"time"

	"github.com/antrail/antrail/packet"
)

// Early drop (CT-38). From 95 % of the limit on, a new connection costs an old
// one its place, if there is one that nobody would miss: never answered, or
// over. It is taken from the port that holds the most, oldest first, and never
// from a port that holds less than the one that asks. If the port holds more
// than its fair share its oldest goes at once; else it must have had the time
// to be answered. Connections that both ends have confirmed are never evicted.
//
// The cost does not grow with the table: a look at the counts of the ports, the
// head of one list, and a few slots of the sweep.

const (
	// answerTime is how long a connection of a port within its fair share is
	// left alone.
	answerTime = time.Second
	// evictTries is how often a victim may be snatched away by another worker.
	evictTries = 8
	// zoneTries is how many of a port's oldest are looked at for one of a zone.
	zoneTries = 32
	// urgentSweep is the slots that are swept when a limit is reached.
	urgentSweep = 64
)

// anyZone is a victim's zone when it does not matter.
const anyZone = -1

// admit makes room for one connection of a zone, or says why there is none.
func (t *Table) admit(zone uint16, from *portShare, now int64) DropReason {
	reason := t.reserve(zone, from)
	if reason == DropNone {
		if t.parent == nil && crowded(t.limits.total.Load(), t.limits.max.Load()) {
			t.evict(from, anyZone, now)
		}
		return DropNone
	}
	wanted := anyZone
	if reason == DropZoneFull {
		wanted = int(zone)
	}
	if t.parent != nil {
		return t.pretend(reason, from, wanted, now)
	}
	t.sweepSlots(urgentSweep, now)
	if t.reserve(zone, from) == DropNone {
		return DropNone
	}
	if !t.evict(from, wanted, now) {
		return reason
	}
	return t.reserve(zone, from)
}

// crowded says whether a new connection is to cost an old one its place.
func crowded(total, most int64) bool { return total > most-most/20 }

// pretend is what a Scratch answers where its table would evict.
func (t *Table) pretend(reason DropReason, from *portShare, zone int, now int64) DropReason {
	if _, ok := t.parent.victim(from.count.Load(), zone, now); ok {
		return DropNone
	}
	return reason
}

// evict removes one connection, if there is one that may go.
func (t *Table) evict(from *portShare, zone int, now int64) bool {
	for range evictTries {
		h, ok := t.victim(from.count.Load(), zone, now)
		if !ok {
			return false
		}
		if t.remove(h, mayGo, now) {
			t.counts.evicted.Add(1)
			return true
		}
	}
	return false
}

func mayGo(c *cell, _, _ int64) bool { return c.flags()&expendable != 0 }

// victim is the connection to be evicted for one of a port that holds asking
// connections.
func (t *Table) victim(asking int64, zone int, now int64) (handle, bool) {
	var most *portShare
	var held, active int64
	t.shares.all(func(_ uint32, s *portShare) {
		n := s.count.Load()
		if n > 0 {
			active++
		}
		if n > held && s.oldest.Load() != 0 {
			most, held = s, n
		}
	})
	if most == nil || held < asking {
		return handle{}, false
	}
	minAge := int64(answerTime)
	if held > t.limits.max.Load()/active {
		minAge = 0
	}
	return most.pick(t.arena, zone, now-minAge)
}

// pick is the port's oldest expendable connection of a zone, if it became so
// before a time. One that another worker is about to make live is passed over.
func (s *portShare) pick(a *arena, zone int, before int64) (handle, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	slot := s.oldest.Load()
	for range zoneTries {
		if slot == 0 {
			break
		}
		c := a.at(slot)
		if int32(uint32(before>>tickBits)-c.since.Load()) < 0 {
			break
		}
		head, w := c.head.Load(), c.keyWords(original)
		if live(head) && (zone == anyZone || w.zone() == uint16(zone)) {
			return handle{slot, uint32(head)}, true
		}
		slot = c.newer.Load()
	}
	return handle{}, false
}

// missed says whether either end would miss the connection: both took part in
// it, and it is not over.
func (e *entry) missed() bool {
	if e.flags&replied == 0 {
		return false
	}
	switch e.keys[original].proto {
	case packet.ProtoTCP:
		low := min(e.tcp[original].state, e.tcp[reply].state)
		return low >= tcpEstablished && low < tcpFinWait2
	case packet.ProtoSCTP:
		return e.state >= sctpEstablished && e.state < sctpHeartbeatSent
	}
	return true
}

// setExpendable sets the flag of a connection that is in no list yet.
func (e *entry) setExpendable() {
	e.flags &^= expendable
	if !e.missed() {
		e.flags |= expendable
	}
}

// relist keeps the connection's place in its port's list in step with whether
// it would be missed. The caller holds the cell's lock.
func (t *Table) relist(e *entry, slot uint32, now int64) {
	listed := e.flags&expendable != 0
	switch {
	case listed && e.missed():
		e.flags &^= expendable
		t.shares.of(t, e.port).leave(t.arena, slot)
	case !listed && !e.missed():
		e.flags |= expendable
		t.shares.of(t, e.port).join(t.arena, slot, now)
	}
}
