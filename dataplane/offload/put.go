package offload

import (
	"github.com/antrail/antrail/dataplane/flowcache"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/ports"
)

// put makes an offload entry from an offer, if its State is still current and there is room.
func (t *Table) put(o *Offer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sw.State() != o.Made {
		t.count(telemetry.OffloadLate)
		return
	}
	generation, ok := t.generationOf(o)
	if !ok {
		t.count(telemetry.OffloadLate)
		return
	}
	if t.sw.Traced(&o.Key, o.In.No) {
		t.count(telemetry.OffloadTraced)
		return
	}
	way, ok := o.way()
	if !ok {
		t.count(telemetry.OffloadNoWay)
		return
	}
	key := o.shown()
	if at, ok := t.byKey[key]; ok {
		if t.takes(at) {
			return
		}
		t.drop(at)
	}
	if !t.fair(o) {
		t.count(telemetry.OffloadNoRoom)
		return
	}
	at, ok := t.allocate(&t.freeEntries, len(t.entries))
	if !ok {
		t.count(telemetry.OffloadNoRoom)
		return
	}
	if int(at) == len(t.entries) {
		t.entries = append(t.entries, entry{})
	}
	conn, ok := t.connOf(o)
	if !ok {
		t.freeEntries = append(t.freeEntries, at)
		t.endUnused()
		return
	}
	t.fill(at, conn, o, &way)
	t.kernel.OffloadEntry(at).Generation.Store(generation)
	t.kernel.Generation().Store(t.generation)
	if err := t.kernel.Put(&key, at); err != nil {
		t.drop(at)
		t.endUnused()
		t.count(telemetry.OffloadNoRoom)
		return
	}
	t.count(telemetry.OffloadPut)
}

// generationOf is the generation of an offer's entry. It returns false if learned entries have
// changed since the walk. It reads Learnings first: if they change after that, the kernel does
// not use the entry.
func (t *Table) generationOf(o *Offer) (uint32, bool) {
	if o.Learned == 0 {
		return t.generation, true
	}
	generation := t.kernel.Learnings().Load()
	return generation, t.sw.Learnings() == o.Learned
}

// takes says whether the kernel may use the offload entry at a place.
func (t *Table) takes(at uint32) bool { return t.valid(at) && t.offloaded(t.entries[at].conn) }

// valid says whether the offload entry at a place has not been withdrawn.
func (t *Table) valid(at uint32) bool {
	c := &t.entries[at]
	return c.made == t.generation && (!c.learned || t.kernel.OffloadEntry(at).Generation.Load() == t.kernel.Learnings().Load())
}

// offloaded says whether a connection is still offloaded.
func (t *Table) offloaded(conn uint32) bool { return t.kernel.Conns()[conn][0].Load() != 0 }

// fair says whether a port may have one more entry.
//
//  1. While the table is less than half full, it may. After that, each port may have an equal
//     part.
//  2. If a port has its part, its answered connections replace unanswered ones. Otherwise a flood
//     of one-way packets would keep answered connections out.
func (t *Table) fair(o *Offer) bool {
	room, has := t.kernel.Room(), t.byPort[o.In]
	switch {
	case len(t.byKey) < room/2, has.entries < room/max(1, len(t.byPort)):
		return true
	case !o.Seen.Answered() || has.unanswered == 0:
		return false
	}
	t.makeRoom(o.In)
	return true
}

// makeRoom ends an entry of an unanswered connection that begins at a port.
func (t *Table) makeRoom(in *Port) {
	for range t.entries {
		t.victim = (t.victim + 1) % len(t.entries)
		c := &t.entries[t.victim]
		if !c.used || !c.unanswered || c.in != in {
			continue
		}
		t.drop(uint32(t.victim))
		if len(t.conns[c.conn].entries) == 0 {
			t.end(c.conn)
		}
		t.count(telemetry.OffloadNoRoom)
		return
	}
}

// allocate is a free place: a used one that is free again, or the next. If there is none, it
// waits until packets under way use none of those that have ended.
func (t *Table) allocate(free *[]uint32, used int) (uint32, bool) {
	if len(*free) == 0 && used == t.kernel.Room() {
		t.release()
	}
	if n := len(*free); n > 0 {
		at := (*free)[n-1]
		*free = (*free)[:n-1]
		return at, true
	}
	if used == t.kernel.Room() {
		return 0, false
	}
	return uint32(used), true
}

// connOf is the place of an offer's connection. It offloads the connection if it is not offloaded
// yet.
func (t *Table) connOf(o *Offer) (uint32, bool) {
	id := o.Seen.ID()
	if at, ok := t.byConn[id]; ok {
		if t.offloaded(at) {
			return at, true
		}
		t.end(at)
	}
	at, ok := t.allocate(&t.freeConns, len(t.conns))
	if !ok {
		t.count(telemetry.OffloadNoRoom)
		return 0, false
	}
	if int(at) == len(t.conns) {
		t.conns = append(t.conns, conn{})
	}
	if !t.sw.Conntrack.Offload(&o.Seen, at, t.sw.Clock()) {
		t.freeConns = append(t.freeConns, at)
		t.count(telemetry.OffloadLate)
		return 0, false
	}
	t.conns[at] = conn{id: id}
	t.byConn[id] = at
	return at, true
}

// hold adds n entries to those of its port: 1 for a new entry, -1 for a dropped one.
func (t *Table) hold(at uint32, n int) {
	c := &t.entries[at]
	h := t.byPort[c.in]
	if h.entries += n; c.unanswered {
		h.unanswered += n
	}
	if t.byPort[c.in] = h; h.entries == 0 {
		delete(t.byPort, c.in)
	}
}

// fill fills the place with an offload entry, before a key leads to it.
func (t *Table) fill(at, conn uint32, o *Offer, way *ports.OffloadWay) {
	t.entries[at] = entry{used: true, made: t.generation, learned: o.Learned != 0, unanswered: !o.Seen.Answered(), key: o.shown(), seen: o.Key, conn: conn, path: o.Path, in: o.In, out: o.Out, last: t.sw.Clock()}
	t.byKey[t.entries[at].key] = at
	t.conns[conn].entries = append(t.conns[conn].entries, at)
	t.hold(at, 1)
	t.current++

	to, ch := t.kernel.OffloadEntry(at), &o.Change
	to.Packets.Store(0)
	to.Bytes.Store(0)
	to.Conn, to.Dir = conn, uint8(o.Seen.Direction())
	to.Out, to.MaxLen = way.Link, uint32(way.MaxFrame)
	to.Parts = ch.Parts.OffloadParts()
	to.IPSum, to.PseudoSum, to.PortSum = ch.IPSum, ch.PseudoSum, ch.PortSum
	to.TTL, to.L4, to.Checksum = ch.TTL, uint8(o.Layers.L4), uint8(flowcache.ChecksumAt(o.Layers.Proto))
	to.Eth, to.IP, to.Ports, to.Addrs = ch.Eth, ch.IP, ch.Ports, ch.Addrs
	o.complete(to, way)
	if o.Learned != 0 {
		to.Parts |= ports.OffloadLearned
	}
}
