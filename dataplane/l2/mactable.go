package l2

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/antrail/antrail/dataplane/lookup"
	"github.com/antrail/antrail/dataplane/telemetry"
)

// MACTable is the table of learned addresses.
//
//  1. An address expires after fdbAge without a packet.
//  2. A full table learns nothing new, and each port has a share of it.
//  3. A packet takes no lock if its address is known or its port has no share left. The lookup, a
//     move to another port, the new age and the count of refused addresses are atomic. Only
//     adding an address and removing some take the lock.
//  4. If an address is removed while one of its packets comes, the next packet adds it again.
type MACTable struct {
	chains [fdbChains]atomic.Pointer[Station]
	size   atomic.Int32
	Ports  atomic.Int32 // of the switch; half of the table is divided among them
	Stray  MACShare     // for frames whose port is not in the switch

	learned, expired, moved atomic.Uint64 // addresses so far

	Changing sync.Mutex // one change of the chains at a time
}

// MACShare counts one port's part of the table, and the addresses refused to the port.
type MACShare struct {
	held    atomic.Int32  // addresses that were first learned at the port
	full    atomic.Uint64 // frames whose address found no share left
	Foreign atomic.Uint64 // frames whose address is configured on another port
}

// Stats returns the counts.
func (m *MACShare) Stats() telemetry.MACStats {
	return telemetry.MACStats{Learned: int(m.held.Load()), Full: m.full.Load(), Foreign: m.Foreign.Load()}
}

// hasShare says whether a port may learn one more address. While the table is less than half
// full, every port may. After that a port may while it has less than its part of the other half.
// So no port can take another one's part.
func (t *MACTable) hasShare(of *MACShare) bool {
	const half = fdbMax / 2
	size := int(t.size.Load())
	return size < half || size < fdbMax && int(of.held.Load()) < max(1, half/int(max(1, t.Ports.Load())))
}

const (
	second = int64(1e9)

	fdbAge    = 300 * second // Open vSwitch's mac-aging-time
	fdbMax    = 8192         // Open vSwitch's mac-table-size
	fdbChains = fdbMax / 2   // a power of two
)

// Station is a learned address, in the chain of its hash.
type Station struct {
	MACKey
	by   *MACShare     // the share that it uses: that of the port where it was first seen
	Port atomic.Uint32 // where it was last seen
	seen atomic.Int64  // clock of a packet, at most a second before the last one
	next atomic.Pointer[Station]
}

// MACKey is an address in a VLAN.
type MACKey struct {
	MAC  uint64
	VLAN uint16
}

// chain is the chain of an address's hash.
func (t *MACTable) chain(k MACKey) *atomic.Pointer[Station] {
	return &t.chains[lookup.Mix(lookup.Seed, k.MAC|uint64(k.VLAN)<<48)%fdbChains]
}

// find is an address's station; nil if the address is unknown.
func (t *MACTable) find(k MACKey) *Station {
	s := t.chain(k).Load()
	for s != nil && s.MACKey != k {
		s = s.next.Load()
	}
	return s
}

// Learn records an address that was seen at a port. A new address uses the port's share.
func (t *MACTable) Learn(k MACKey, port uint32, of *MACShare, now int64) {
	switch s := t.find(k); {
	case s != nil:
		t.meet(s, port, now)
	case !t.hasShare(of):
		of.full.Add(1)
	default:
		t.addAddress(k, port, of, now)
	}
}

// meet records a station that was seen at a port.
func (t *MACTable) meet(s *Station, port uint32, now int64) {
	moved := s.Port.Load() != port
	if moved {
		s.Port.Store(port)
		t.moved.Add(1)
	}
	if moved || now-s.seen.Load() >= second {
		s.seen.Store(now)
	}
}

// addAddress adds an address that was unknown when its packet came. It checks again under the
// lock, because others may have added it or used the share's last place.
func (t *MACTable) addAddress(k MACKey, port uint32, of *MACShare, now int64) {
	t.Changing.Lock()
	defer t.Changing.Unlock()
	if s := t.find(k); s != nil {
		t.meet(s, port, now)
		return
	}
	if !t.hasShare(of) {
		of.full.Add(1)
		return
	}
	s, first := &Station{MACKey: k, by: of}, t.chain(k)
	s.Port.Store(port)
	s.seen.Store(now)
	s.next.Store(first.Load())
	first.Store(s)
	of.held.Add(1)
	t.size.Add(1)
	t.learned.Add(1)
}

// Port is the port where an address was last seen.
func (t *MACTable) Port(k MACKey, now int64) (uint32, bool) {
	if s := t.find(k); s != nil && now-s.seen.Load() < fdbAge {
		return s.Port.Load(), true
	}
	return 0, false
}

// Expire removes addresses older than fdbAge.
func (t *MACTable) Expire(now int64) {
	n := t.Remove(func(s *Station) bool { return now-s.seen.Load() >= fdbAge })
	t.expired.Add(uint64(n))
}

// Remove removes the addresses for which goes is true, and returns their number.
func (t *MACTable) Remove(goes func(*Station) bool) (n int) {
	t.Changing.Lock()
	defer t.Changing.Unlock()
	for i := range t.chains {
		at := &t.chains[i]
		for s := at.Load(); s != nil; s = at.Load() {
			if goes(s) {
				at.Store(s.next.Load()) // a lookup at s still reaches the stations after it
				t.size.Add(-1)
				s.by.held.Add(-1)
				n++
			} else {
				at = &s.next
			}
		}
	}
	return n
}

// Stats counts addresses.
func (t *MACTable) Stats() telemetry.MACTableStats {
	return telemetry.MACTableStats{Current: int(t.size.Load()), Max: fdbMax, Learned: t.learned.Load(), Expired: t.expired.Load(), Moved: t.moved.Load()}
}

// List is the known addresses, by port.
func (t *MACTable) List(now int64) []telemetry.LearnedMAC {
	var rows []telemetry.LearnedMAC
	for i := range t.chains {
		for s := t.chains[i].Load(); s != nil; s = s.next.Load() {
			r := telemetry.LearnedMAC{Port: s.Port.Load(), VLAN: s.VLAN, Age: now - s.seen.Load()}
			for i := range r.MAC {
				r.MAC[i] = byte(s.MAC >> (40 - 8*i))
			}
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(a, b telemetry.LearnedMAC) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.VLAN, b.VLAN), slices.Compare(a.MAC[:], b.MAC[:]))
	})
	return rows
}
