package dataplane

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/antrail/antrail/packet"
)

// fdb is the table of learned addresses. An address is forgotten after fdbAge
// without a packet. A full table learns nothing new, and each port has a share of it.
//
// A packet takes no lock if its address is known or if the port has no share left:
// the lookup, the move to another port, the new age and the count of what was refused
// are atomic. Only a packet that adds an address takes the lock, and a caller that
// removes some. If an address is removed while a packet of it comes, the next packet
// teaches it again.
type fdb struct {
	chains [fdbChains]atomic.Pointer[station]
	size   atomic.Int32
	ports  atomic.Int32 // of the switch, among which half of the table is divided
	stray  macShare     // of all frames whose port is not in the switch

	mu sync.Mutex // one change of the chains at a time
}

// macShare counts one port's part of the table, and what the port did not get.
type macShare struct {
	held    atomic.Int32  // addresses that were first learned at the port
	full    atomic.Uint64 // frames whose address the port had no share left for
	foreign atomic.Uint64 // frames whose address is configured on another port
}

// MACStats are the addresses that NORMAL learned at a port, and the frames whose
// address it did not learn.
type MACStats struct {
	Learned int    `json:"learned"` // addresses that count for the port's share now
	Full    uint64 `json:"full"`    // frames: the port's share of the table was full
	Foreign uint64 `json:"foreign"` // frames: port security gives the address to another port
}

func (m *macShare) stats() MACStats {
	return MACStats{int(m.held.Load()), m.full.Load(), m.foreign.Load()}
}

// hasShare says whether a port may learn one more. While the table is less than half
// full, every port may. Then a port may while it holds less than its part of the other
// half, so that no port can take another one's part.
func (t *fdb) hasShare(of *macShare) bool {
	const half = fdbMax / 2
	size := int(t.size.Load())
	return size < half || size < fdbMax && int(of.held.Load()) < max(1, half/int(max(1, t.ports.Load())))
}

const (
	fdbAge    = 300 * second // Open vSwitch's mac-aging-time
	fdbMax    = 8192         // Open vSwitch's mac-table-size
	fdbChains = fdbMax / 2   // a power of two
)

// station is an address that was learned, in a chain of those of one hash.
type station struct {
	macKey
	by   *macShare     // whose share it takes: the port where it was first seen
	port atomic.Uint32 // where it was last seen
	seen atomic.Int64  // clock of a packet, less than a second before its last
	next atomic.Pointer[station]
}

type macKey struct {
	mac  uint64
	vlan uint16
}

// LearnedMAC is a row of fdb-show.
type LearnedMAC struct {
	Port uint32     `json:"ofPort"`
	VLAN uint16     `json:"vlan"`
	MAC  packet.MAC `json:"mac"`
	Age  int64      `json:"ageNS"` // nanoseconds since its last packet
}

// chain is where an address would be.
func (t *fdb) chain(k macKey) *atomic.Pointer[station] {
	return &t.chains[mix(lookupSeed, k.mac|uint64(k.vlan)<<48)%fdbChains]
}

// find is an address's station, nil when it is not known.
func (t *fdb) find(k macKey) *station {
	s := t.chain(k).Load()
	for s != nil && s.macKey != k {
		s = s.next.Load()
	}
	return s
}

// learn notes that an address was seen at a port, whose share it takes if it is new.
func (t *fdb) learn(k macKey, port uint32, of *macShare, now int64) {
	switch s := t.find(k); {
	case s != nil:
		s.meet(port, now)
	case !t.hasShare(of):
		of.full.Add(1)
	default:
		t.add(k, port, of, now)
	}
}

// meet notes that the station was seen at a port.
func (s *station) meet(port uint32, now int64) {
	moved := s.port.Load() != port
	if moved {
		s.port.Store(port)
	}
	if moved || now-s.seen.Load() >= second {
		s.seen.Store(now)
	}
}

// add learns an address that was not known when its packet came. Others may have
// taken the share's last place since the caller looked.
func (t *fdb) add(k macKey, port uint32, of *macShare, now int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.find(k); s != nil {
		s.meet(port, now)
		return
	}
	if !t.hasShare(of) {
		of.full.Add(1)
		return
	}
	s, first := &station{macKey: k, by: of}, t.chain(k)
	s.port.Store(port)
	s.seen.Store(now)
	s.next.Store(first.Load())
	first.Store(s)
	of.held.Add(1)
	t.size.Add(1)
}

// port is where an address was last seen.
func (t *fdb) port(k macKey, now int64) (uint32, bool) {
	if s := t.find(k); s != nil && now-s.seen.Load() < fdbAge {
		return s.port.Load(), true
	}
	return 0, false
}

// expire forgets addresses whose age has come.
func (t *fdb) expire(now int64) {
	t.remove(func(s *station) bool { return now-s.seen.Load() >= fdbAge })
}

// remove forgets addresses that are to go.
func (t *fdb) remove(goes func(*station) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.chains {
		at := &t.chains[i]
		for s := at.Load(); s != nil; s = at.Load() {
			if goes(s) {
				at.Store(s.next.Load()) // a lookup that stands at s still reaches those behind it
				t.size.Add(-1)
				s.by.held.Add(-1)
			} else {
				at = &s.next
			}
		}
	}
}

// list is what is known, by port.
func (t *fdb) list(now int64) []LearnedMAC {
	var rows []LearnedMAC
	for i := range t.chains {
		for s := t.chains[i].Load(); s != nil; s = s.next.Load() {
			r := LearnedMAC{Port: s.port.Load(), VLAN: s.vlan, Age: now - s.seen.Load()}
			for i := range r.MAC {
				r.MAC[i] = byte(s.mac >> (40 - 8*i))
			}
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(a, b LearnedMAC) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.VLAN, b.VLAN), slices.Compare(a.MAC[:], b.MAC[:]))
	})
	return rows
}
