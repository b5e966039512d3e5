package offload

import (
	"sync/atomic"

	"github.com/antrail/antrail/dataplane/telemetry"
)

// The kernel's packets are credited to the entries, tables, groups and ports of the walk that
// their offload entry replaces. That happens when somebody reads counters, once a second, and
// when the offload entry ends.

// Stats returns the current entries and the counts so far.
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

// CreditNow credits the kernel's packets until now, and refreshes the timeouts of their
// connections.
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

// creditAll credits all entries. The caller holds mu.
func (t *Table) creditAll() {
	now := t.sw.Clock()
	for at := range t.entries {
		if t.entries[at].path != nil { // a dropped one too, until its place is free
			t.credit(uint32(at), now)
		}
	}
}

// credit credits the packets of an offload entry since the last call to entries and ports.
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

// Counts is the packets that entered or left by a port through offload entries.
type Counts struct{ rxPackets, rxBytes, txPackets, txBytes atomic.Uint64 }

// Stats returns the counts.
func (c *Counts) Stats() telemetry.KernelStats {
	return telemetry.KernelStats{RxPackets: c.rxPackets.Load(), RxBytes: c.rxBytes.Load(), TxPackets: c.txPackets.Load(), TxBytes: c.txBytes.Load()}
}
