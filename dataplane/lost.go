package dataplane

import (
	"cmp"
	"slices"
	"sync/atomic"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
)

// Lost packets: what was lost, where and why, always on. drop.go counts all of
// them; here the last ones are kept, with their first bytes.
//
// Each worker has a ring that it fills and one reader empties (Switch.Lost):
// neither waits for the other, and nothing is allocated. The worker publishes
// once per batch. While the ring is full, packets are counted as missed by it
// and go no slower. One port may fill a quarter of a ring between two readings:
// whoever floods cannot hide what others lose.

const (
	// LostBytes is how many bytes of a lost packet are kept.
	LostBytes = 128
	// lostRoom is how many lost packets of a worker wait for the reader.
	lostRoom = 1024
	// lostPorts is among how many shares the ports are spread. A power of two.
	lostPorts = 64
)

// LostPacket is a packet that the switch lost. Its bytes, offload aside, are as
// they were where it was lost: NAT and rewrites before are done.
type LostPacket struct {
	At     int64  // nanoseconds of the switch's clock, of the packet's batch
	Port   uint32 // that it entered by
	Reason DropReason
	Table  uint8       // where its walk ended
	Entry  *flow.Entry // that the table gave; nil for a table-miss, and where no table was asked
	CT     LostCT
	Tunnel packet.Tunnel // that it came in, or was to leave in
	Length int           // in bytes
	kept   uint8
	head   [LostBytes]byte
}

// Frame is the packet's first bytes, at most LostBytes.
func (p *LostPacket) Frame() []byte { return p.head[:p.kept] }

// LostCT is what conntrack had said of a lost packet; zero when it was not asked,
// and of what is lost as a packet leaves that went as one before it.
type LostCT struct {
	State conntrack.State `json:"state,omitzero"`
	Zone  uint16          `json:"zone,omitzero"`
	Mark  uint32          `json:"mark,omitzero"`
	Label conntrack.Label `json:"label,omitzero"`
}

// Key is a key that holds nothing but what conntrack had said.
func (c *LostCT) Key() flow.Key {
	return MetaKey(&conntrack.Meta{State: c.State, Zone: c.Zone, Mark: c.Mark, Label: c.Label})
}

func lostCT(m *conntrack.Meta) LostCT { return LostCT{m.State, m.Zone, m.Mark, m.Label} }

// loss is why and where a packet was lost.
type loss struct {
	reason DropReason
	table  uint8
	entry  *flow.Entry
	ct     LostCT
}

// lostRing is lost packets on their way from one writer to one reader.
type lostRing struct {
	slots []LostPacket
	next  uint64            // the writer's
	since uint64            // tail when shares were cleared
	share [lostPorts]uint16 // slots that ports have taken since

	head   atomic.Uint64 // published
	tail   atomic.Uint64 // read
	missed atomic.Uint64
}

func newLostRing() *lostRing { return &lostRing{slots: make([]LostPacket, lostRoom)} }

// take is the slot for the next packet from a port; nil, and counted, when the
// ring or the port's share of it is full.
func (r *lostRing) take(port uint32) *LostPacket {
	tail := r.tail.Load()
	if tail != r.since {
		r.since = tail
		clear(r.share[:])
	}
	mine := &r.share[port%lostPorts]
	if r.next-tail == lostRoom || *mine == lostRoom/4 {
		r.missed.Add(1)
		return nil
	}
	*mine++
	r.next++
	return &r.slots[(r.next-1)%lostRoom]
}

// note puts a packet into the ring, if there is room.
func (r *lostRing) note(l *loss, f *packet.Frame, port uint32, now int64) {
	if p := r.take(port); p != nil {
		p.fill(l, f, port, now)
	}
}

func (p *LostPacket) fill(l *loss, f *packet.Frame, port uint32, now int64) {
	p.At, p.Port, p.Reason, p.Table, p.Entry, p.CT = now, port, l.reason, l.table, l.entry, l.ct
	p.Tunnel, p.Length, p.kept = packet.Tunnel{}, 0, 0
	if f != nil { // a fragment that waits has taken its frame along
		p.Tunnel, p.Length = f.Tunnel, f.Len()
		p.kept = uint8(copy(p.head[:], f.Bytes()))
	}
}

// publish shows the reader what was noted.
func (r *lostRing) publish() {
	if r.next != r.head.Load() {
		r.head.Store(r.next)
	}
}

// read empties the ring. There is one reader at a time.
func (r *lostRing) read(to []LostPacket) []LostPacket {
	head := r.head.Load()
	for at := r.tail.Load(); at != head; at++ {
		to = append(to, r.slots[at%lostRoom])
	}
	r.tail.Store(head)
	return to
}

// Lost is the packets that were lost since it was last called, by time: each is
// told once. Missed is how many there was no room to keep, since the beginning.
// Any goroutine may call it.
func (s *Switch) Lost() (all []LostPacket, missed uint64) {
	s.reading.Lock()
	defer s.reading.Unlock()
	for _, r := range s.lostRings() {
		all = r.read(all)
		missed += r.missed.Load()
	}
	slices.SortStableFunc(all, func(a, b LostPacket) int { return cmp.Compare(a.At, b.At) })
	return all, missed
}

func (s *Switch) lostRings() []*lostRing {
	all := []*lostRing{s.outside.lost, s.lostFragments}
	for _, w := range s.workers {
		all = append(all, w.lost)
	}
	return all
}

// lose counts a lost packet and notes it.
func (w *worker) lose(f *packet.Frame, l *loss) {
	w.drops[l.table][l.reason].Add(1)
	w.sums.dropped++
	w.lost.note(l, f, w.walk.inPort, w.now)
}

// loseLate is lose for a packet that had an output already.
func (w *worker) loseLate(f *packet.Frame, r DropReason) {
	k := &w.walk
	w.lose(f, &loss{r, k.last, k.met, lostCT(&k.ct)})
}

// noteReplayed notes a packet that is dropped as one before it was. It is counted
// with its path.
func (k *walk) noteReplayed(e *cached, l *loss, f *packet.Frame) {
	p := k.w.lost.take(k.inPort)
	if p == nil {
		return
	}
	if e.parts != 0 {
		e.apply(f, &k.layers)
	}
	p.fill(l, f, k.inPort, k.w.now)
}
