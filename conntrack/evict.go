package conntrack

import (
	"time"

	"github.com/antrail/antrail/conntrack/proto"
	"github.com/antrail/antrail/conntrack/store"
	"github.com/antrail/antrail/conntrack/tuple"
	"github.com/antrail/antrail/packet"
)

// Early drop (CT-38, CT-47). From 95 % of the limit on, a new connection evicts an old one. The
// first that exists in this order is evicted:
//
//  1. a spare connection (never answered, or over) of a port above its fair share, if it was
//     listed for answerTime
//  2. from the longer list of a port above its fair share: a younger spare connection, or an
//     answered one without states (UDP, ICMP and others)
//  3. a spare connection of a port within its share, if it was listed for answerTime
//
// In each case the port that holds the most pays, and never one that holds less than the port of
// the new connection. If none exists, a port above its fair share is refused (DropPortShare). A
// port within its share gets the last 5 %. When the table is full, it is refused too
// (DropTableFull).
//
// Why evict answered UDP, instead of only refusing the port? The last 5 % alone would not be
// enough for the other ports. A busy resolver's newest query is worth more than its oldest. A
// refusal at the tunnel would cut off whole Nodes. The next packet of an evicted connection
// begins it again, after the policies have allowed it again. Established TCP and SCTP are never
// evicted: their ends would not know, and the translation would be missing. A port that fills the
// table with them is refused.
//
// Why the longer list? Many senders may share a port, as at the tunnel. A flood then evicts its
// own kind, and not the few connections that others have just begun.
//
// Why does a TCP handshake stay (young)? After the SYN/ACK the client considers the connection
// established and may wait for the server's first data. Without the connection the server's
// packets would be invalid, and the client would have nothing to resend. A handshake is evicted
// after handshakeTime without a packet, or if a long list holds only handshakes.
//
// Among answered connections the oldest is evicted, unless it was in use since it was listed.
// Then it moves to the end of its list (the second chance of CLOCK). A connection that the kernel
// forwards (offload.go) is in use while packets pass. If it is evicted, the kernel stops at once,
// as at any end.
//
// The cost does not grow with the table. It is the counts of the ports, the head of one list, and
// a few slots of the sweep. Only packets that begin a connection pay it.

const (
	// answerTime is how long a connection of a port within its fair share is protected.
	answerTime = time.Second
	// handshakeTime is how long a TCP handshake is protected after its last packet: Linux resends
	// a SYN/ACK after 1, 2 and 4 s.
	handshakeTime = 5 * time.Second
	// evictTries is how many victims may end before this worker removes one.
	evictTries = 8
	// idleTries is how many of a port's oldest are searched for one that is not in use.
	idleTries = 8
	// zoneTries is how many of a port's oldest are searched for one of a zone.
	zoneTries = 32
	// urgentSweep is how many slots are swept when a limit is reached.
	urgentSweep = 64
)

// anyZone is a victim's zone if the zone does not matter.
const anyZone = -1

// admit counts one more connection of a zone and a port, whose share is from. It makes room for it,
// or returns why there is none.
func (t *Table) admit(zone uint16, port uint32, from *portShare, now int64) DropReason {
	reason := t.reserve(zone, from)
	switch {
	case reason == DropNone && !t.crowded():
		return DropNone
	case reason == DropNone:
		if t.payFor(port, now) {
			return DropNone
		}
		t.uncount(zone, from)
		return DropPortShare
	}
	if t.parent == nil {
		t.sweepSlots(urgentSweep, now)
		if t.reserve(zone, from) == DropNone {
			return DropNone
		}
	}
	wanted := anyZone
	if reason == DropZoneFull {
		wanted = int(zone)
	}
	evicted, over := t.evict(port, false, wanted, now)
	switch {
	case evicted && t.parent != nil:
		return DropNone
	case evicted:
		return t.reserve(zone, from)
	case over && reason == DropTableFull:
		return DropPortShare
	}
	return reason
}

// payFor evicts a connection for one that a crowded table has just counted. It reports false
// if none may be evicted and the port is above its fair share.
func (t *Table) payFor(port uint32, now int64) bool {
	if evicted, over := t.evict(port, true, anyZone, now); evicted || !over {
		return true
	}
	if t.parent != nil {
		return false
	}
	t.sweepSlots(urgentSweep, now)
	return !t.crowded()
}

// crowded says whether the table is so full that a new connection evicts an old one.
func (t *Table) crowded() bool { return crowded(t.limits.total.Load(), t.limits.max.Load()) }

func crowded(total, most int64) bool { return total > most-most/20 }

// evict removes one connection to make room for a port's new one, if one may be evicted. counted
// says whether the new one is already counted. over says whether the port is above its fair
// share. In a Scratch, evict removes nothing.
func (t *Table) evict(port uint32, counted bool, zone int, now int64) (evicted, over bool) {
	of, holds := t, t.shares.ofPort(t, port).count.Load()
	if t.parent != nil {
		of, counted = t.parent, false
	}
	from := of.shares.ofPort(of, port)
	for range evictTries {
		d := of.divide(from, counted)
		over = d.weight(from, holds) > d.fair
		v, ok := t.victim(&d, from, zone, now)
		if !ok {
			return false, over
		}
		if t.parent != nil {
			return true, over
		}
		if t.remove(v.Handle, v.list.stillThere, now) {
			t.counts.evicted.Add(1)
			v.payer.evicted.Add(1)
			return true, over
		}
	}
	return false, over
}

// victim is a connection that may be evicted, and its port.
type victim struct {
	store.Handle
	payer *portShare
	list  listed
}

// stillThere says whether a connection is in the list where it was found.
func (l listed) stillThere(c *store.Cell, _, _ int64) bool { return listOfCell(c) == l }

// victim is the connection to evict for a port's new one.
func (t *Table) victim(d *division, from *portShare, zone int, now int64) (victim, bool) {
	asks := d.weight(from, from.count.Load())
	longer, shorter := answered, spare
	if d.length(spare) > d.length(answered) {
		longer, shorter = spare, answered
	}
	for _, c := range [...]struct {
		list listed
		over bool  // only of a port above its fair share
		age  int64 // at least
	}{{spare, true, int64(answerTime)}, {longer, true, 0}, {shorter, true, 0}, {spare, false, int64(answerTime)}} {
		payer, held := d.payer[c.list], d.held[c.list]
		if payer == nil || held < asks || c.over && held <= d.fair {
			continue
		}
		if h, ok := t.pick(payer, c.list, zone, c.age, now); ok {
			return victim{h, payer, c.list}, true
		}
	}
	return victim{}, false
}

// pick is the oldest connection of a zone in a port's list, if it was listed for age. It skips a
// connection that another worker is about to make live. It also skips one that is in use, unless
// age is 0 and all that it has searched are in use.
func (t *Table) pick(s *portShare, list listed, zone int, age, now int64) (best store.Handle, ok bool) {
	a, tries := t.arena, zoneTries
	if t.parent != nil {
		a = t.parent.arena
	}
	if list == answered && zone == anyZone {
		tries = idleTries
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &s.lists[list]
	for slot := l.Oldest(); slot != 0 && tries > 0; tries-- {
		c := a.At(slot)
		if c.TicksAfterListing(now-age) < 0 {
			break
		}
		next := c.Next()
		if head, w := c.Head(), c.KeyWords(tuple.Original); store.Live(head) && (zone == anyZone || w.Zone() == uint16(zone)) {
			if list == answered && !t.inUse(c) || list == spare && !t.young(c, now) {
				return store.Handle{Slot: slot, Gen: uint32(head)}, true
			}
			if !ok && age == 0 {
				best, ok = store.Handle{Slot: slot, Gen: uint32(head)}, true
			}
			if t.parent == nil {
				l.Remove(a, slot)
				l.Append(a, slot, now)
			}
		}
		slot = next
	}
	return best, ok
}

// inUse says whether an answered connection has had a packet since it was listed.
func (t *Table) inUse(c *store.Cell) bool {
	w := c.KeyWords(tuple.Original)
	last := c.Expires() - int64(t.machine.Timeouts.Other(w.Proto(), proto.Replied))
	return c.TicksAfterListing(last) > 0
}

// young says whether a spare connection is an unfinished TCP handshake. Both ends have sent a
// SYN, and the last packet came less than handshakeTime ago.
func (t *Table) young(c *store.Cell, now int64) bool {
	var s proto.State
	w := c.KeyWords(tuple.Original)
	c.LoadState(&s, w.Proto())
	last := s.Expires - int64(t.machine.Timeouts.TCPSynReceived)
	return w.Proto() == packet.ProtoTCP && s.Flags&proto.Replied != 0 && now-last < int64(handshakeTime) &&
		min(s.TCP[tuple.Original].State, s.TCP[tuple.Reply].State) == proto.TCPSynSent
}

// setExpendable sets the flag by which the connection is listed.
func setExpendable(e *store.Entry) {
	e.Flags &^= store.Expendable
	if !e.Missed(e.Keys[tuple.Original].Proto) {
		e.Flags |= store.Expendable
	}
}

// relist moves the connection to the list for its state. The caller holds the cell's lock.
func (t *Table) relist(e *store.Entry, slot uint32, now int64) {
	before := listOf(e)
	setExpendable(e)
	if after := listOf(e); after != before {
		t.shares.ofPort(t, e.Port).move(t.arena, slot, before, after, now)
	}
}
