package flowcache

import (
	"sync/atomic"

	"github.com/antrail/antrail/dataplane/lookup"
	"github.com/antrail/antrail/dataplane/telemetry"
)

// Visit is a lookup of a walk, and the entry that it gave.
type Visit struct {
	State *lookup.TableState
	Table uint8
	Entry *lookup.Counters // nil for a table-miss
}

// Credit counts packets, the last of which came at now, for the entries and tables of
// visits. Any goroutine may call it.
func Credit(visits []Visit, packets, bytes uint64, now int64) {
	for i := range visits {
		v := &visits[i]
		v.State.Lookups.Add(packets)
		if v.Entry != nil {
			v.State.Hits.Add(packets)
			v.Entry.Packets.Add(packets)
			v.Entry.Bytes.Add(bytes)
			v.Entry.Touch(now)
		}
	}
}

// HashVisits mixes visits into a hash.
func HashVisits(visits []Visit, h uint64) uint64 {
	for _, v := range visits {
		h = lookup.Mix(h, uint64(v.Table)<<32)
		if v.Entry != nil {
			h = lookup.Mix(h, uint64(v.Entry.Slot))
		}
	}
	return h
}

// Pending is what packets of a path or megaflow counted that flow entries do not know
// yet. The dozens of entries and tables of a path would cost a packet that comes alone
// more than everything else that is done for it. So a batch adds to Pending, and the
// entries learn of it when somebody reads their counters.
type Pending struct {
	packets, bytes atomic.Uint64
	used           atomic.Int64 // clock of the last batch
}

// Add adds what a batch counted.
func (p *Pending) Add(packets, bytes uint64, now int64) {
	p.bytes.Add(bytes)
	p.used.Store(now)
	p.packets.Add(packets) // last: a reader that finds some finds the rest of them too
}

// Any says whether anything is pending.
func (p *Pending) Any() bool { return p.packets.Load() != 0 }

// Take gives f what is pending, once, if anything is.
func (p *Pending) Take(f func(packets, bytes uint64, now int64)) {
	if !p.Any() {
		return
	}
	if packets := p.packets.Swap(0); packets != 0 {
		f(packets, p.bytes.Swap(0), p.used.Load())
	}
}

// Counts is events as other goroutines see them.
type Counts [telemetry.NumCacheEvents]atomic.Uint64

// Move adds a batch's counts and sets those of the batch to 0.
func (c *Counts) Move(batch *[telemetry.NumCacheEvents]uint64) {
	for i, n := range batch {
		if n != 0 {
			c[i].Add(n)
			batch[i] = 0
		}
	}
}

// AddTo adds the counts to statistics.
func (c *Counts) AddTo(s *telemetry.CacheStats) {
	for i := range c {
		s.Events[i] += c[i].Load()
	}
}
