package conntrack

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// Stats is the counters since the table was made, and how full the table is.
type Stats struct {
	Entries int `json:"entries"`
	Max     int `json:"max"`
	// Drops counts dropped packets, by reason.
	Drops [numDropReasons]uint64 `json:"drops"`
	// OutOfWindow is the TCP segments outside the window (D3).
	OutOfWindow uint64 `json:"outOfWindow"`
	// Created and Expired count connections. Expired does not count connections that were
	// replaced or flushed. EarlyDropped counts those that were evicted for a new one.
	Created      uint64 `json:"created"`
	Expired      uint64 `json:"expired"`
	EarlyDropped uint64 `json:"earlyDropped"`
	// Raced counts connections that another worker has made first.
	Raced uint64 `json:"raced"`
	// ProbeMax is the longest chain of the index that an insertion met.
	ProbeMax int `json:"probeMax"`
	// NATTries counts the searches for a free tuple by the number of their tries. Element i
	// counts those with fewer than 1<<i tries that no earlier element counts.
	NATTries [natTryBuckets]uint64 `json:"natTries"`
	// SweepTime is the time of all slices of the sweep, SweepLast that of the last one.
	SweepTime time.Duration `json:"sweepTimeNS"`
	SweepLast time.Duration `json:"sweepLastNS"`
	// Restored is what the table restored when it was made.
	Restored Restored `json:"restored"`
}

// natTryBuckets is enough for searches of natTries tries.
const natTryBuckets = 10

// counts is the counters behind Stats.
type counts struct {
	drops       [numDropReasons]atomic.Uint64
	outOfWindow atomic.Uint64
	created     atomic.Uint64
	expired     atomic.Uint64
	evicted     atomic.Uint64
	raced       atomic.Uint64
	probeMax    atomic.Int64
	natTries    [natTryBuckets]atomic.Uint64
	sweepTime   atomic.Int64
	sweepLast   atomic.Int64
	restored    Restored
}

// probe counts the length of a chain.
func (c *counts) probe(length int) {
	for n := c.probeMax.Load(); n < int64(length); n = c.probeMax.Load() {
		c.probeMax.CompareAndSwap(n, int64(length))
	}
}

// searched counts a search for a free tuple by its tries.
func (c *counts) searched(tries int) {
	c.natTries[min(bits.Len(uint(tries)), natTryBuckets-1)].Add(1)
}

// Stats is the table's counters now.
func (t *Table) Stats() Stats {
	c := &t.counts
	s := Stats{
		Entries: int(t.limits.total.Load()), Max: t.Max(),
		OutOfWindow: c.outOfWindow.Load(), Created: c.created.Load(), Expired: c.expired.Load(),
		EarlyDropped: c.evicted.Load(), Raced: c.raced.Load(), ProbeMax: int(c.probeMax.Load()),
		SweepTime: time.Duration(c.sweepTime.Load()), SweepLast: time.Duration(c.sweepLast.Load()),
		Restored: c.restored,
	}
	for i := range s.Drops {
		s.Drops[i] = c.drops[i].Load()
	}
	for i := range s.NATTries {
		s.NATTries[i] = c.natTries[i].Load()
	}
	return s
}

// PortStats is a port's part of a table.
type PortStats struct {
	Port uint32 `json:"ofPort"`
	// Entries counts the connections that its packets began. Refused counts its packets that
	// were dropped. Evicted counts its connections that were removed to make room.
	Entries int    `json:"entries"`
	Refused uint64 `json:"refused"`
	Evicted uint64 `json:"evicted"`
}

// Ports is every port with a count above 0, by number. Ports beyond 16 bits count together, as
// 65535.
func (t *Table) Ports() (all []PortStats) {
	for port, s := range t.shares.pages.all() {
		p := PortStats{uint32(port), int(s.count.Load()), s.dropped.Load(), s.evicted.Load()}
		if p.Entries > 0 || p.Refused > 0 || p.Evicted > 0 {
			all = append(all, p)
		}
	}
	return all
}

// Restored counts the connections restored from an arena that outlived a process.
type Restored struct {
	// Entries counts the restored connections.
	Entries int `json:"entries"`
	// Torn counts the cells that hold no sound connection: half written when the process was
	// killed, or forged.
	Torn int `json:"torn"`
	// Expired counts the expired connections, Refused those beyond a limit of this table.
	Expired int `json:"expired"`
	Refused int `json:"refused"`
	// Empty says why the arena was not restored. It is "" if it was.
	Empty string `json:"empty,omitzero"`
	// Took is how long the restore took.
	Took time.Duration `json:"tookNS"`
}
