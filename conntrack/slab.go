package conntrack

// Storage of connections: fixed-size entries in chunks that are allocated once
// and never move, so that a table of a million connections gives the garbage
// collector a few hundred pointer-free objects and no work. An entry is named
// by its slot; a handle also carries the slot's generation, which changes when
// the entry is given back, so a handle that outlived its connection is
// recognised and harmless.

// entry is one connection.
type entry struct {
	keys [2]key    // original and reply direction; the second is after NAT
	next [2]uint32 // the index's chains, by direction; the free list in next[0]

	expires int64 // on the table's clock, nanoseconds
	label   Label
	mark    uint32
	gen     uint32 // odd while the slot is in use

	tcp   [2]peer // per direction: the side that sends in it
	isn   uint32  // of a SYN on an established connection, under annotated
	tag   [2]uint32
	flags entryFlags
	state sctpState
}

// entryFlags is what a connection is besides its protocol's state.
type entryFlags uint8

const (
	replied        entryFlags = 1 << iota // a packet of the reply direction was seen
	sourceNAT                             // made with nat(src=…)
	destinationNAT                        // made with nat(dst=…)
	annotated                             // entry.isn is set, by the original side
	annotatedReply                        // … by the reply side
	pickedUp                              // began with a TCP segment that was no SYN
)

// handle names an entry across calls. The zero handle names none.
type handle struct{ slot, gen uint32 }

const (
	chunkBits = 10
	chunkSize = 1 << chunkBits
)

// slab is the entries. Slot 0 is never used, so that 0 can mean none.
type slab struct {
	chunks []*[chunkSize]entry
	top    uint32 // slots below it have been handed out at least once
	free   uint32 // first of the free list
}

func (s *slab) at(slot uint32) *entry { return &s.chunks[slot>>chunkBits][slot%chunkSize] }

// get is the entry that a handle names, nil when it is gone.
func (s *slab) get(h handle) *entry {
	if h.slot == 0 || h.slot >= s.top {
		return nil
	}
	if e := s.at(h.slot); e.gen == h.gen {
		return e
	}
	return nil
}

// alloc hands out an empty entry. A chunk is allocated when no slot is free.
func (s *slab) alloc() (uint32, *entry) {
	slot := s.free
	if slot == 0 {
		return s.grow()
	}
	e := s.at(slot)
	s.free = e.next[0]
	*e = entry{gen: e.gen + 1}
	return slot, e
}

func (s *slab) grow() (uint32, *entry) {
	s.top = max(s.top, 1)
	if int(s.top>>chunkBits) == len(s.chunks) {
		s.chunks = append(s.chunks, new([chunkSize]entry))
	}
	slot := s.top
	s.top++
	e := s.at(slot)
	e.gen = 1
	return slot, e
}

// release takes an entry back.
func (s *slab) release(slot uint32) {
	e := s.at(slot)
	e.gen++
	e.next[0] = s.free
	s.free = slot
}

// live says whether a slot is in use.
func (e *entry) live() bool { return e.gen&1 != 0 }
