package dataplane

import (
	"sync"

	"github.com/antrail/antrail/flow"
)

// meter is an installed meter: a token bucket per band, and counters. Meters
// stand on slow ways (packet-in), so a lock per packet is what it costs.
type meter struct {
	*flow.Meter
	mu             sync.Mutex
	packets, bytes uint64
	dropped        []uint64 // by band
	tokens         []int64  // by band, in thousandths of a packet, or bits
	filled         int64    // clock when tokens were last added
}

// newMeter makes a meter with full buckets; counters of the meter it modifies
// are kept.
func newMeter(m *flow.Meter, old *meter) *meter {
	n := &meter{Meter: m, dropped: make([]uint64, len(m.Bands)), tokens: make([]int64, len(m.Bands))}
	for i := range m.Bands {
		n.tokens[i] = n.capacity(i)
	}
	if old != nil {
		old.mu.Lock()
		defer old.mu.Unlock()
		n.packets, n.bytes, n.filled = old.packets, old.bytes, old.filled
		copy(n.dropped, old.dropped)
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
func (m *meter) pass(size int, now int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.packets++
	m.bytes += uint64(size)
	m.fill(now)
	cost := int64(1000)
	if !m.PktPS {
		cost = int64(size) * 8
	}
	for i := range m.Bands {
		if m.tokens[i] < cost {
			m.dropped[i]++
			return false
		}
	}
	for i := range m.Bands {
		m.tokens[i] -= cost
	}
	return true
}

// fill adds the tokens of the time since the last packet: a rate is packets or
// kilobits per second, so a millisecond brings rate tokens either way.
func (m *meter) fill(now int64) {
	if m.filled == 0 {
		m.filled = now
	}
	elapsed := now - m.filled
	if elapsed < 0 { // a worker whose batch began before another's
		return
	}
	ms := min(elapsed/1e6, 3600e3)
	m.filled = now - elapsed%1e6
	for i, b := range m.Bands {
		m.tokens[i] = min(m.capacity(i), m.tokens[i]+ms*int64(b.Rate))
	}
}
