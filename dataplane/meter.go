package dataplane

import (
	"sync/atomic"

	"github.com/antrail/antrail/flow"
)

// meter is an installed meter: a token bucket per band, and counters. Its rate is
// one for all workers, so they share the buckets; none waits for another. A packet
// takes its tokens by a compare-and-swap, and counts in its worker's tally.
type meter struct {
	*flow.Meter
	came   *bucketCounters // packets that met it
	bands  []band
	filled atomic.Int64 // clock to which tokens have been added; 0 before the first packet
}

// band is a band's token bucket.
type band struct {
	tokens  atomic.Int64 // thousandths of a packet, or bits
	dropped *bucketCounters
}

// newMeter makes a meter with full buckets; counters of the meter it modifies
// are kept, those of bands by their place.
func newMeter(m *flow.Meter, old *meter) *meter {
	n := &meter{Meter: m, bands: make([]band, len(m.Bands))}
	if old == nil {
		old = &meter{came: newBucketCounters()}
	}
	n.came = old.came
	for i := range n.bands {
		b := &n.bands[i]
		b.tokens.Store(n.capacity(i))
		if i < len(old.bands) {
			b.dropped = old.bands[i].dropped
		} else {
			b.dropped = newBucketCounters()
		}
	}
	return n
}

// capacity is how many tokens band i holds when full: the burst size, or one
// second's worth without burst (ovs-ofctl(8), meter bands).
func (m *meter) capacity(i int) int64 {
	if b := m.Bands[i]; m.Burst && b.BurstSize > 0 {
		return int64(b.BurstSize) * 1000
	}
	return int64(m.Bands[i].Rate) * 1000
}

// pass says whether a packet stays within every band, and takes its tokens.
func (m *meter) pass(t *bucketTally, size int, now int64) bool {
	t.credit(m.came, size)
	m.fill(now)
	cost := int64(1000)
	if !m.PktPS {
		cost = int64(size) * 8
	}
	for i := range m.bands {
		if !m.bands[i].take(cost) {
			t.credit(m.bands[i].dropped, size)
			for j := range i {
				m.bands[j].tokens.Add(cost)
			}
			return false
		}
	}
	return true
}

// take takes tokens, if there are so many.
func (b *band) take(cost int64) bool {
	for {
		have := b.tokens.Load()
		if have < cost {
			return false
		}
		if b.tokens.CompareAndSwap(have, have-cost) {
			return true
		}
	}
}

// fill adds the tokens of the whole milliseconds that have passed: a rate is
// packets or kilobits per second, so each brings rate tokens either way. Of two
// workers at once one adds them, once.
func (m *meter) fill(now int64) {
	filled := m.filled.Load()
	if filled == 0 {
		m.filled.CompareAndSwap(0, now)
		return
	}
	ms := (now - filled) / 1e6
	if ms <= 0 || !m.filled.CompareAndSwap(filled, filled+ms*1e6) { // or this batch began before another worker's
		return
	}
	for i := range m.bands {
		m.bands[i].add(min(ms, 3600e3)*int64(m.Bands[i].Rate), m.capacity(i))
	}
}

// add adds tokens, up to so many in all.
func (b *band) add(tokens, most int64) {
	for {
		have := b.tokens.Load()
		if b.tokens.CompareAndSwap(have, min(most, have+tokens)) {
			return
		}
	}
}
