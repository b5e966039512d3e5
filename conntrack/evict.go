package conntrack

import (
	"time"

	"github.com/antrail/antrail/packet"
)

// Early drop (CT-38, CT-47). From 95 % of the limit on, a new connection costs an
// old one its place. In this order, the first that exists goes:
//
//	1. a spare connection (never answered, or over) of a port above its fair
//	   share, if it has had a second to be answered
//	2. a younger one, or an answered one without states (UDP, ICMP and others),
//	   of a port above its fair share: the longer of the two lists pays first
//	3. a spare connection of a port within its share, if it has had a second to
//	   be answered
//
// In each case the port that holds the most pays, and never one that holds less
// than the port that asks. If none exists, a port above its fair share is refused
// (DropPortShare). A port within its share gets the last 5 %, and is refused when
// the table is full (DropTableFull).
//
// Why evict answered UDP, and not only refuse the port: the last 5 % alone would
// not last for the other ports, a busy resolver's newest question is worth more
// than its oldest, and a refusal at the tunnel would cut off whole Nodes. The
// next packet of an evicted one begins it again, and the policies judge it again.
// Established TCP and SCTP are never evicted: their ends would not know, and the
// translation would be lost. A port that fills the table with them is refused.
//
// Why the longer list: many senders may share a port, as at the tunnel. A flood
// pays with its own kind. It cannot push out the few that others have just begun.
//
// Why a TCP handshake stays (young): after the SYN/ACK the client believes in the
// connection and may wait for the server's first data. The server's packets would
// be invalid without the connection, and the client has nothing to send again.
// A handshake goes after handshakeTime without a packet, or if a long list has
// nothing else.
//
// Of answered connections the oldest goes, unless it was in use since it was
// listed: then it moves to the end of its list (the second chance of CLOCK). One
// that the kernel forwards (away.go) counts as in use while packets pass. When it
// is evicted all the same, the kernel stops at once, as at any end.
//
// The cost does not grow with the table: a look at the counts of the ports, the
// head of one list, and a few slots of the sweep. Only packets that begin a
// connection pay it.

const (
	// answerTime is how long a connection of a port within its fair share is
	// left alone.
	answerTime = time.Second
	// handshakeTime is how long a TCP handshake is left alone after its last packet:
	// Linux sends a SYN/ACK again after 1, 2 and 4 s.
	handshakeTime = 5 * time.Second
	// evictTries is how often a victim may be snatched away by another worker.
	evictTries = 8
	// idleTries is how many of a port's oldest are looked at for one that is not in use.
	idleTries = 8
	// zoneTries is how many of a port's oldest are looked at for one of a zone.
	zoneTries = 32
	// urgentSweep is the slots that are swept when a limit is reached.
	urgentSweep = 64
)

// anyZone is a victim's zone when it does not matter.
const anyZone = -1

// admit makes room for one connection of a zone, or says why there is none.
func (t *Table) admit(zone uint16, port uint32, now int64) DropReason {
	from := t.shares.of(t, port)
	reason := t.reserve(zone, from)
	switch {
	case reason == DropNone && !t.crowded():
		return DropNone
	case reason == DropNone:
		if t.payFor(port, now) {
			return DropNone
		}
		t.forget(zone, port)
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

// payFor evicts a connection for one that a crowded table has just counted. It
// reports false when none may go and the port is above its fair share.
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

// crowded says whether the table holds so many that a new connection costs an old
// one its place.
func (t *Table) crowded() bool { return crowded(t.limits.total.Load(), t.limits.max.Load()) }

func crowded(total, most int64) bool { return total > most-most/20 }

// evict removes one connection for a port's new one, which is counted already or
// not, if there is one that may go. It also says whether the port is above its
// fair share. In a Scratch, nothing is removed.
func (t *Table) evict(port uint32, counted bool, zone int, now int64) (evicted, over bool) {
	of, holds := t, t.shares.of(t, port).count.Load()
	if t.parent != nil {
		of, counted = t.parent, false
	}
	from := of.shares.of(of, port)
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
		if t.remove(v.handle, v.list.stillThere, now) {
			t.counts.evicted.Add(1)
			v.payer.evicted.Add(1)
			return true, over
		}
	}
	return false, over
}

// victim is a connection that may go, and whose it is.
type victim struct {
	handle
	payer *portShare
	list  listed
}

// stillThere says whether a connection stands in the list in which it was found.
func (l listed) stillThere(c *cell, _, _ int64) bool { return c.list() == l }

// victim is the connection that goes for one of a port.
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

// pick is the oldest connection of a zone in a port's list, if it has been listed for
// an age. One that another worker is about to make live is passed over. So is one that
// is in use, unless all that are looked at are, and none has to be old.
func (t *Table) pick(s *portShare, list listed, zone int, age, now int64) (best handle, ok bool) {
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
	for slot := l.oldest.Load(); slot != 0 && tries > 0; tries-- {
		c := a.at(slot)
		if int32(uint32((now-age)>>tickBits)-c.since.Load()) < 0 {
			break
		}
		next := c.newer.Load()
		if head, w := c.head.Load(), c.keyWords(original); live(head) && (zone == anyZone || w.zone() == uint16(zone)) {
			if list == answered && !t.inUse(c) || list == spare && !t.young(c, now) {
				return handle{slot, uint32(head)}, true
			}
			if !ok && age == 0 {
				best, ok = handle{slot, uint32(head)}, true
			}
			if t.parent == nil {
				l.leave(a, slot)
				l.join(a, slot, now)
			}
		}
		slot = next
	}
	return best, ok
}

// inUse says whether an answered connection has had a packet since it was listed.
func (t *Table) inUse(c *cell) bool {
	w := c.keyWords(original)
	last := c.expires() - int64(t.timeouts.other(w.proto(), replied))
	return int32(uint32(last>>tickBits)-c.since.Load()) > 0
}

// young says whether a spare connection is a TCP handshake: both ends have sent a SYN,
// the last packet came less than handshakeTime ago, and more is to come.
func (t *Table) young(c *cell, now int64) bool {
	if w := c.keyWords(original); w.proto() != packet.ProtoTCP || c.flags()&replied == 0 {
		return false
	}
	var ends [2]peer
	for dir := range ends {
		ends[dir].unpack(c.mut[6+dir].Load())
	}
	last := c.expires() - int64(t.timeouts.TCPSynReceived)
	return min(ends[original].state, ends[reply].state) == tcpSynSent && now-last < int64(handshakeTime)
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

// setExpendable sets the flag by which the connection is listed.
func (e *entry) setExpendable() {
	e.flags &^= expendable
	if !e.missed() {
		e.flags |= expendable
	}
}

// relist keeps the connection's place in its port's lists in step with whether
// it would be missed. The caller holds the cell's lock.
func (t *Table) relist(e *entry, slot uint32, now int64) {
	before := e.list()
	e.setExpendable()
	if after := e.list(); after != before {
		t.shares.of(t, e.port).move(t.arena, slot, before, after, now)
	}
}
