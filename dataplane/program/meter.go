package program

import (
	"sync/atomic"

	"github.com/antrail/antrail/flow"
)

// Meter is an installed meter with a token bucket for each band. All workers share the buckets,
// because the rate is for all of them. No worker waits for another: a packet takes its tokens
// by a compare-and-swap.
type Meter struct {
	*flow.Meter
	Came    *BucketCounters // packets that met the meter
	Buckets []band          // of the bands
	filled  atomic.Int64    // clock to which tokens have been added; 0 before the first packet
}

// band is a band's token bucket.
type band struct {
	tokens  atomic.Int64 // thousandths of a packet, or bits
	Dropped *BucketCounters
}

// newMeter makes a meter with full buckets. It keeps the counters of the meter that it replaces,
// and of its bands by index.
func newMeter(m *flow.Meter, old *Meter) *Meter {
	n := &Meter{Meter: m, Buckets: make([]band, len(m.Bands))}
	if old == nil {
		old = &Meter{Came: newBucketCounters()}
	}
	n.Came = old.Came
	for i := range n.Buckets {
		b := &n.Buckets[i]
		b.tokens.Store(n.capacity(i))
		if i < len(old.Buckets) {
			b.Dropped = old.Buckets[i].Dropped
		} else {
			b.Dropped = newBucketCounters()
		}
	}
	return n
}

// capacity is the number of tokens in the full bucket of band i: the burst size, or one
// second's tokens without burst (ovs-ofctl(8), meter bands).
func (m *Meter) capacity(i int) int64 {
	if b := m.Bands[i]; m.Burst && b.BurstSize > 0 {
		return int64(b.BurstSize) * 1000
	}
	return int64(m.Bands[i].Rate) * 1000
}

// Pass takes the tokens of a packet from every band. If a band has too few, it takes none and
// returns false.
func (m *Meter) Pass(t *BucketCounts, size int, now int64) bool {
	t.Count(m.Came, size)
	m.fill(now)
	cost := int64(1000)
	if !m.PktPS {
		cost = int64(size) * 8
	}
	for i := range m.Bands {
		if !m.Buckets[i].takeTokens(cost) {
			t.Count(m.Buckets[i].Dropped, size)
			for j := range i {
				m.Buckets[j].tokens.Add(cost)
			}
			return false
		}
	}
	return true
}

// takeTokens takes tokens if the bucket has them.
func (b *band) takeTokens(cost int64) bool {
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

// fill adds the tokens of the whole milliseconds that have passed. A rate is in packets or
// kilobits per second, so a millisecond adds rate tokens (thousandths of a packet, or bits). If
// two workers call it at once, one adds them.
func (m *Meter) fill(now int64) {
	filled := m.filled.Load()
	if filled == 0 {
		m.filled.CompareAndSwap(0, now)
		return
	}
	ms := (now - filled) / 1e6
	if ms <= 0 || !m.filled.CompareAndSwap(filled, filled+ms*1e6) { // ms <= 0 also if another worker's later batch filled before
		return
	}
	for i := range m.Bands {
		m.Buckets[i].addTokens(min(ms, 3600e3)*int64(m.Bands[i].Rate), m.capacity(i))
	}
}

// addTokens adds tokens up to a limit.
func (b *band) addTokens(tokens, most int64) {
	for {
		have := b.tokens.Load()
		if b.tokens.CompareAndSwap(have, min(most, have+tokens)) {
			return
		}
	}
}
