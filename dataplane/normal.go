package dataplane

import (
	"cmp"
	"slices"
	"sync"

	"github.com/antrail/antrail/flow"
)

// NORMAL is the MAC learning switch: the source address is learned with the
// port of entry, the destination looked up; an unknown or a group address is
// flooded. Antrea sends ARP this way.

// fdb is the table of learned addresses. An address is forgotten after fdbAge
// without a packet; a full table learns nothing new.
type fdb struct {
	mu   sync.RWMutex
	macs map[macKey]macEntry
}

const (
	fdbAge = 300 * second // Open vSwitch's mac-aging-time
	fdbMax = 8192         // Open vSwitch's mac-table-size
)

type macKey struct {
	mac  uint64
	vlan uint16
}

type macEntry struct {
	port uint32
	seen int64
}

// LearnedMAC is a row of fdb-show.
type LearnedMAC struct {
	Port uint32
	VLAN uint16
	MAC  [6]byte
	Age  int64 // nanoseconds since its last packet
}

// learn notes that an address was seen at a port.
func (t *fdb) learn(k macKey, port uint32, now int64) {
	t.mu.RLock()
	old, ok := t.macs[k]
	t.mu.RUnlock()
	if ok && old.port == port && now-old.seen < second {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.macs == nil {
		t.macs = make(map[macKey]macEntry)
	}
	if ok || len(t.macs) < fdbMax {
		t.macs[k] = macEntry{port, now}
	}
}

// port is where an address was last seen.
func (t *fdb) port(k macKey, now int64) (uint32, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	e, ok := t.macs[k]
	return e.port, ok && now-e.seen < fdbAge
}

// expire forgets the old, and, when gone is not 0, all of that port.
func (t *fdb) expire(now int64, gone uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for k, e := range t.macs {
		if now-e.seen >= fdbAge || gone != 0 && e.port == gone {
			delete(t.macs, k)
		}
	}
}

func (t *fdb) list(now int64) []LearnedMAC {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var rows []LearnedMAC
	for k, e := range t.macs {
		r := LearnedMAC{Port: e.port, VLAN: k.vlan, Age: now - e.seen}
		for i := range r.MAC {
			r.MAC[i] = byte(k.mac >> (40 - 8*i))
		}
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b LearnedMAC) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.VLAN, b.VLAN), slices.Compare(a.MAC[:], b.MAC[:]))
	})
	return rows
}

const (
	groupAddress = 1 << 40        // the group bit of a MAC address
	reservedMAC  = 0x0180c2000000 // 01:80:c2:00:00:00 to :0f (IEEE 802.1D, table 7-10)
)

// normal runs the NORMAL action.
func (k *walk) normal() {
	get := func(id flow.FieldID) uint64 { return flow.FieldByID(id).Get(&k.key).Lo }
	src, dst, vlan := get(flow.EthSrc), get(flow.EthDst), uint16(get(flow.VlanVID))
	if dst&^0xf == reservedMAC {
		k.drop(DropReservedMAC)
		return
	}
	k.w.rec.forbid()
	t, now := &k.w.sw.fdb, k.w.now
	if !k.dry() && src&groupAddress == 0 {
		t.learn(macKey{src, vlan}, k.key.InPort(), now)
	}
	if dst&groupAddress == 0 {
		if dst == src { // just learned, or, in a trace, as if it were
			k.output(k.key.InPort())
			return
		}
		if port, ok := t.port(macKey{dst, vlan}, now); ok {
			k.output(port)
			return
		}
	}
	k.flood()
}
