package telemetry

import (
	"sync/atomic"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
)

const (
	// DroppedBytes is how many bytes of a dropped packet are kept.
	DroppedBytes = 128
	// dropRoom is how many dropped packets of a worker wait for the reader.
	dropRoom = 1024
	// dropShares is the number of shares over which ports are spread, a power of two.
	dropShares = 64
)

// DroppedPacket is a packet that the switch dropped. Its bytes are those at the drop, after NAT
// and rewrites. Its offload state is not kept.
type DroppedPacket struct {
	At     int64  // clock of the packet's batch, nanoseconds
	Port   uint32 // of entry
	Reason DropReason
	Table  uint8       // where its walk ended
	Entry  *flow.Entry // found there; nil for a table-miss, and if the drop came before a lookup
	CT     DroppedCT
	Tunnel packet.Tunnel // from which it came, or into which it was to go
	Length int           // in bytes
	kept   uint8
	head   [DroppedBytes]byte
}

// Frame is the packet's first bytes, at most DroppedBytes.
func (p *DroppedPacket) Frame() []byte { return p.head[:p.kept] }

// DroppedCT is conntrack's answer for a dropped packet. It is zero without a ct(), and for a
// packet that a flow cache entry sent and its port dropped.
type DroppedCT struct {
	State conntrack.State `json:"state,omitzero"`
	Zone  uint16          `json:"zone,omitzero"`
	Mark  uint32          `json:"mark,omitzero"`
	Label conntrack.Label `json:"label,omitzero"`
}

// Key returns a key that has only the conntrack fields.
func (c *DroppedCT) Key() flow.Key {
	return MetaKey(&conntrack.Meta{State: c.State, Zone: c.Zone, Mark: c.Mark, Label: c.Label})
}

// CTOf returns the part of a packet's conntrack state that is kept with its drop.
func CTOf(m *conntrack.Meta) DroppedCT { return DroppedCT{m.State, m.Zone, m.Mark, m.Label} }

// Drop says why and where a packet was dropped.
type Drop struct {
	Reason DropReason
	Table  uint8
	Entry  *flow.Entry
	CT     DroppedCT
}

// DropRing keeps the last dropped packets of a worker for one reader.
//
//  1. The worker fills it and one reader empties it. Neither waits for the other, and neither
//     allocates in the ring. The worker publishes once per batch.
//  2. If the ring is full, the worker counts packets as missed and does not slow down.
//  3. One port may fill a quarter of the ring between two readings, so a flood from one port
//     leaves room for the drops of others.
type DropRing struct {
	slots []DroppedPacket
	next  uint64             // the writer's
	since uint64             // tail when shares were cleared
	share [dropShares]uint16 // slots that ports have taken since

	head   atomic.Uint64 // published
	tail   atomic.Uint64 // read
	Missed atomic.Uint64
}

// NewDropRing makes an empty ring.
func NewDropRing() *DropRing { return &DropRing{slots: make([]DroppedPacket, dropRoom)} }

// ReserveSlot returns the slot for the next packet from a port. If the ring or the port's share
// is full, it counts the packet as missed and returns nil.
func (r *DropRing) ReserveSlot(port uint32) *DroppedPacket {
	tail := r.tail.Load()
	if tail != r.since {
		r.since = tail
		clear(r.share[:])
	}
	mine := &r.share[port%dropShares]
	if r.next-tail == dropRoom || *mine == dropRoom/4 {
		r.Missed.Add(1)
		return nil
	}
	*mine++
	r.next++
	return &r.slots[(r.next-1)%dropRoom]
}

// NotePacket adds a packet to the ring, if there is room.
func (r *DropRing) NotePacket(l *Drop, f *packet.Frame, port uint32, now int64) {
	if p := r.ReserveSlot(port); p != nil {
		p.Fill(l, f, port, now)
	}
}

// Fill fills the slot. f is nil for a packet that has given up its frame.
func (p *DroppedPacket) Fill(l *Drop, f *packet.Frame, port uint32, now int64) {
	p.At, p.Port, p.Reason, p.Table, p.Entry, p.CT = now, port, l.Reason, l.Table, l.Entry, l.CT
	p.Tunnel, p.Length, p.kept = packet.Tunnel{}, 0, 0
	if f != nil { // nil for a fragment that waits, because the datagram owns its frame
		p.Tunnel, p.Length = f.Tunnel, f.Len()
		p.kept = uint8(copy(p.head[:], f.Bytes()))
	}
}

// Publish shows the reader the packets noted so far.
func (r *DropRing) Publish() {
	if r.next != r.head.Load() {
		r.head.Store(r.next)
	}
}

// Read empties the ring. There is one reader at a time.
func (r *DropRing) Read(to []DroppedPacket) []DroppedPacket {
	head := r.head.Load()
	for at := r.tail.Load(); at != head; at++ {
		to = append(to, r.slots[at%dropRoom])
	}
	r.tail.Store(head)
	return to
}
