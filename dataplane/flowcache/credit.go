package flowcache

import (
	"sync/atomic"

	"github.com/antrail/antrail/dataplane/lookup"
	"github.com/antrail/antrail/dataplane/telemetry"
)

// Visit is a lookup of a walk, and the entry that it found.
type Visit struct {
	State *lookup.TableState
	Table uint8
	Entry *lookup.Counters // nil for a table-miss
}

// Credit counts packets for the entries and tables of visits. The last of the packets came at
// now. Any goroutine may call it.
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

// Pending is the packets of a path or megaflow that are not credited to flow entries yet. A path
// has dozens of entries and tables. Crediting all of them would cost a single packet more than
// the rest of its replay. So a batch adds to Pending, and the entries are credited when somebody
// reads their counters.
type Pending struct {
	packets, bytes atomic.Uint64
	used           atomic.Int64 // clock of the last batch
}

// Add adds the counts of a batch.
func (p *Pending) Add(packets, bytes uint64, now int64) {
	p.bytes.Add(bytes)
	p.used.Store(now)
	p.packets.Add(packets) // last: a reader that sees packets also sees bytes and used
}

// Any says whether anything is pending.
func (p *Pending) Any() bool { return p.packets.Load() != 0 }

// Take passes everything pending to f, once, if there is any.
func (p *Pending) Take(f func(packets, bytes uint64, now int64)) {
	if !p.Any() {
		return
	}
	if packets := p.packets.Swap(0); packets != 0 {
		f(packets, p.bytes.Swap(0), p.used.Load())
	}
}

// Counts is the events that other goroutines read.
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
