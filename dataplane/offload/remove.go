package offload

import (
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/ports"
)

// unusedAfter is how long an unused offload entry stays, in nanoseconds. It is less than any
// timeout of an offloaded connection (conntrack.Offload).
const unusedAfter = int64(15e9)

// Withdraw makes the kernel use no present offload entry. When it returns, no packet is under way
// by one.
func (t *Table) Withdraw() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current == 0 {
		return
	}
	if t.generation++; t.generation == 0 {
		t.generation = 1
	}
	t.kernel.Generation().Store(0) // until the next generation has an entry
	t.kernel.Learnings().Add(1)
	t.kernel.Settle()
	t.creditAll()
	t.events[telemetry.OffloadWithdrawn].Add(uint64(t.current))
	t.current = 0
	select {
	case t.stale <- struct{}{}:
	default:
	}
}

// Learned withdraws the entries whose walks could meet a learned entry, because learned entries
// have changed. Workers call it.
func (t *Table) Learned() {
	if t != nil {
		t.kernel.Learnings().Add(1)
	}
}

// clearSlice is how many places are cleared under one hold of the lock.
const clearSlice = 256

// clearOffloaded removes the offload entries that the kernel may no longer use.
func (t *Table) clearOffloaded() {
	for from, more := 0, true; more; from += clearSlice {
		more = t.clearSome(from)
	}
}

// clearSome is clearOffloaded for some places. It returns whether there are more.
func (t *Table) clearSome(from int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for at := from; at < min(from+clearSlice, len(t.entries)); at++ {
		if t.entries[at].used && !t.takes(uint32(at)) {
			t.drop(uint32(at))
		}
	}
	t.endUnused()
	t.release()
	return from+clearSlice < len(t.entries)
}

// drop ends an offload entry; its connection stays.
func (t *Table) drop(at uint32) {
	c := &t.entries[at]
	if t.byKey[c.key] == at {
		t.kernel.Delete(&c.key) // it was put, and only the table deletes entries
		delete(t.byKey, c.key)
	}
	t.kernel.OffloadEntry(at).Generation.Store(0)
	if c.made == t.generation {
		if t.current--; t.current == 0 {
			t.kernel.Generation().Store(0)
		}
	}
	conn := &t.conns[c.conn]
	for i, other := range conn.entries {
		if other == at {
			conn.entries = append(conn.entries[:i], conn.entries[i+1:]...)
			break
		}
	}
	c.used = false
	t.hold(at, -1)
	t.leftEntries = append(t.leftEntries, at)
}

// end ends a connection's offload entries, and then its offload.
func (t *Table) end(conn uint32) {
	c := &t.conns[conn]
	for len(c.entries) > 0 {
		t.drop(c.entries[0])
	}
	t.sw.Conntrack.StopOffload(c.id, conn)
	delete(t.byConn, c.id)
	t.leftConns = append(t.leftConns, conn)
}

// endUnused ends connections that have no offload entry any more.
func (t *Table) endUnused() {
	for _, at := range t.byConn {
		if len(t.conns[at].entries) == 0 {
			t.end(at)
		}
	}
}

// release waits until no packet uses the ended entries and connections, and frees their places.
func (t *Table) release() {
	if len(t.leftEntries)+len(t.leftConns) == 0 {
		return
	}
	t.kernel.Settle()
	now := t.sw.Clock()
	for _, at := range t.leftEntries {
		t.credit(at, now)
		t.entries[at] = entry{}
	}
	for _, at := range t.leftConns {
		t.tellConntrack(at, now)
		t.sw.Conntrack.EndOffload(t.conns[at].id, at)
		t.conns[at] = conn{}
	}
	t.freeEntries = append(t.freeEntries, t.leftEntries...)
	t.freeConns = append(t.freeConns, t.leftConns...)
	t.leftEntries, t.leftConns = t.leftEntries[:0], t.leftConns[:0]
}

// Tend credits the packets of offload entries and refreshes the timeouts of their connections. It
// ends entries that are unused, withdrawn or not offloaded any more. It is called once a second,
// before anything expires.
func (t *Table) Tend(now int64) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.creditAll()
	for at := range t.entries {
		switch c := &t.entries[at]; {
		case !c.used:
		case now-c.last > unusedAfter:
			t.count(telemetry.OffloadUnused)
			t.drop(uint32(at))
		case c.learned && c.made == t.generation && !t.valid(uint32(at)):
			t.count(telemetry.OffloadWithdrawn)
			t.drop(uint32(at))
		}
	}
	for _, at := range t.byConn {
		if t.tellConntrack(at, now); !t.offloaded(at) {
			t.count(telemetry.OffloadEnded)
			t.end(at)
		}
	}
	t.endUnused()
	t.release()
}

// tellConntrack restarts a connection's timeout if packets have passed.
func (t *Table) tellConntrack(at uint32, now int64) {
	if c := &t.conns[at]; c.moved {
		c.moved = false
		t.sw.Conntrack.TouchOffloaded(c.id, at, now)
	}
}

// Close ends all offload entries.
func (t *Table) Close() {
	if t != nil {
		t.Withdraw()
		t.clearOffloaded()
	}
}

// TakeBack drops the entries whose packets a live trace wants. When it returns, none of these
// packets is under way in the kernel. Before the call, Switch.Traced must know the trace, so that
// no more of these entries are put.
func (t *Table) TakeBack(wants func(key *ports.OffloadKey, inPort uint32) bool) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for at := range t.entries {
		if c := &t.entries[at]; c.used && wants(&c.seen, c.in.No) {
			t.count(telemetry.OffloadTraced)
			t.drop(uint32(at))
		}
	}
	t.endUnused()
	t.release()
}
