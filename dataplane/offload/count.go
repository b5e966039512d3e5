package offload

import (
	"sync/atomic"

	"github.com/antrail/antrail/dataplane/telemetry"
)

// What takes an offload entry is credited to the entries, tables, groups and ports of the
// walk that it stands for. That is done when somebody asks, once a second, and when the
// offload entry ends.

// Stats returns what there is and what has been done.
func (t *Table) Stats() (st telemetry.OffloadStats) {
	if t == nil {
		return st
	}
	t.CreditNow()
	t.mu.Lock()
	defer t.mu.Unlock()
	st = telemetry.OffloadStats{
		On: true, Entries: uint64(t.current), Connections: uint64(len(t.byConn)), Room: uint64(t.kernel.Room()),
		Packets: t.packets.Load(), Bytes: t.bytes.Load(), Dropped: t.kernel.Dropped(),
	}
	for i := range t.events {
		st.Events[i] = t.events[i].Load()
	}
	return st
}

func (t *Table) count(e telemetry.OffloadEvent) { t.events[e].Add(1) }

// creditNow credits what has passed until now, and keeps its connections alive.
func (t *Table) CreditNow() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.creditAll()
	now := t.sw.Clock()
	for _, at := range t.byConn {
		t.tellConntrack(at, now)
	}
	for _, at := range t.leftConns { // packets may have passed before makeRoom ended it
		t.tellConntrack(at, now)
	}
}

// creditAll is creditNow under the lock.
func (t *Table) creditAll() {
	now := t.sw.Clock()
	for at := range t.entries {
		if t.entries[at].path != nil { // even one that was dropped, until its place is free
			t.credit(uint32(at), now)
		}
	}
}

// credit tells entries and ports what has taken an offload entry since it was last
// called.
func (t *Table) credit(at uint32, now int64) {
	c, k := &t.entries[at], t.kernel.OffloadEntry(at)
	packets, bytes := k.Packets.Load(), k.Bytes.Load()
	if packets == c.packets && bytes == c.bytes {
		return
	}
	more, size := packets-c.packets, bytes-c.bytes
	c.packets, c.bytes, c.last = packets, bytes, now
	t.conns[c.conn].moved = true
	t.packets.Add(more)
	t.bytes.Add(size)
	c.path.Credit(more, size, now)
	c.in.Counts.rxPackets.Add(more)
	c.in.Counts.rxBytes.Add(size)
	c.out.Counts.txPackets.Add(more)
	c.out.Counts.txBytes.Add(size)
}

// Counts is what came and went through a port by offload entries.
type Counts struct{ rxPackets, rxBytes, txPackets, txBytes atomic.Uint64 }

// Stats returns the counts.
func (c *Counts) Stats() telemetry.KernelStats {
	return telemetry.KernelStats{RxPackets: c.rxPackets.Load(), RxBytes: c.rxBytes.Load(), TxPackets: c.txPackets.Load(), TxBytes: c.txBytes.Load()}
}
