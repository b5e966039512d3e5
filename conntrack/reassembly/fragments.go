package reassembly

import (
	"sync"
	"time"

	"github.com/antrail/antrail/conntrack/tuple"
	"github.com/antrail/antrail/packet"
)

// Limits of waiting fragments (CT-36).
const (
	MaxDatagrams = 1024             // at a time
	MaxFragments = 64               // of one datagram
	MaxBytes     = 4 << 20          // of memory for waiting fragments
	PortShare    = 8                // one port may use an eighth of datagrams and memory
	Timeout      = 15 * time.Second // from the first fragment of a datagram
	MinFragment  = 256              // bytes of an IP packet, except a datagram's last
	MaxDatagram  = 65535            // bytes, as the length field of the whole would count them
)

// Drop is why a fragment is dropped.
type Drop uint8

// The reasons.
const (
	// DropNone: the fragment waits.
	DropNone Drop = iota
	// DropShape: the fragment is malformed, or shorter than MinFragment and not the last.
	DropShape
	// DropTooLong: the datagram would be longer than MaxDatagram.
	DropTooLong
	// DropTooMany: the datagram has more than MaxFragments.
	DropTooMany
	// DropOverlap: two fragments of the datagram overlap or contradict each
	// other.
	DropOverlap
	// DropDuplicate: the same fragment already waits.
	DropDuplicate
	// DropFull: no room is left for waiting fragments, or for those of this port.
	DropFull
	// DropExpired: the others did not come within Timeout.
	DropExpired
)

// Fragments holds fragments until their datagrams are whole. T is the caller's data for
// continuing with a fragment. Any goroutine may call it.
type Fragments[T any] struct {
	dropped func(*Piece[T], Drop)

	mu        sync.Mutex
	memory    pieceMemory
	datagrams map[fragKey]*Datagram[T]
	oldest    *Datagram[T] // in a ring by age; nil if there is none
	shares    map[uint32]share
	all       share
	pieces    []*Piece[T]    // free ones
	records   []*Datagram[T] // free ones
	completed uint64
}

// share is a port's use of the limits, or that of all ports.
type share struct{ datagrams, pieces, bytes int }

// fragKey says which fragments belong together. For IPv6 it omits the protocol, because only the
// first fragment's counts (RFC 8200, section 4.5).
type fragKey struct {
	src, dst tuple.Address
	id       uint32
	zone     uint16
	proto    uint8
	family   tuple.Family
}

// Piece is a waiting fragment.
type Piece[T any] struct {
	Frame *packet.Frame
	Then  T // the caller's data for continuing with it

	at     packet.Fragment
	l3     int
	header int // headerLen
	port   uint32
}

// Datagram is a datagram with waiting fragments.
type Datagram[T any] struct {
	key     fragKey
	pieces  []*Piece[T] // by offset
	held    int         // bytes of the datagram that have come
	total   int         // bytes of the whole datagram, 0 while unknown
	expires int64
	dead    Drop   // why it can no longer become whole
	port    uint32 // of the first fragment
	older   *Datagram[T]
	newer   *Datagram[T]
}

// Pieces is the datagram's fragments in order.
func (d *Datagram[T]) Pieces() []*Piece[T] { return d.pieces }

// Stats counts waiting fragments, and the datagrams that became whole.
type Stats struct {
	Datagrams int    `json:"datagrams"`
	Fragments int    `json:"fragments"`
	Bytes     int    `json:"bytes"` // of memory
	Completed uint64 `json:"completed"`
}

// Arrival is a fragment that came to a ct() action from a port, in Frame with headers at Layers.
type Arrival struct {
	Frame  *packet.Frame
	Layers *packet.Layers
	Zone   uint16
	Port   uint32
}

// NewFragments makes an empty store. The store calls dropped for each waiting fragment that it
// drops. dropped must not call the store.
func NewFragments[T any](dropped func(*Piece[T], Drop)) *Fragments[T] {
	return &Fragments[T]{dropped: dropped, datagrams: map[fragKey]*Datagram[T]{}, shares: map[uint32]share{}}
}

// Owns says whether a frame is in the store's memory, because it has waited before. Add keeps
// such a frame, and copies any other.
func (s *Fragments[T]) Owns(f *packet.Frame) bool { return f.Pool() == packet.Pool(&s.memory) }

// Add makes a fragment wait, or returns why it cannot wait. Then the frame still belongs to the
// caller. fill writes the caller's data for continuing with it. If the fragment completes its
// datagram, Add returns the datagram, which belongs to the caller until Release. now is in
// nanoseconds, on a monotonic clock.
func (s *Fragments[T]) Add(a *Arrival, now int64, fill func(*T)) (*Datagram[T], Drop) {
	g, drop := a.fragment()
	if drop != DropNone {
		return nil, drop
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	d, drop := s.find(a.key(&g), a.Port, now)
	if drop != DropNone {
		return nil, drop
	}
	i, drop := d.place(a, &g)
	if drop == DropNone {
		drop = s.insert(d, i, a, &g, fill)
	}
	if drop != DropNone && drop != DropDuplicate {
		s.kill(d, drop)
	}
	if drop != DropNone || !d.whole() {
		return nil, drop
	}
	s.removeDatagram(d)
	s.completed++
	return d, DropNone
}

// key is the datagram of a fragment.
func (a *Arrival) key(g *packet.Fragment) fragKey {
	k := tuple.Key{Family: tuple.IPv6}
	if a.Layers.EtherType == packet.EtherTypeIPv4 {
		k.Family = tuple.IPv4
	}
	k.ReadAddresses(a.Frame.Bytes()[a.Layers.L3:])
	return fragKey{src: k.Src, dst: k.Dst, id: g.ID, zone: a.Zone, proto: k.Proto, family: k.Family}
}

// find is the datagram of a key. It makes one if there is none.
func (s *Fragments[T]) find(k fragKey, port uint32, now int64) (*Datagram[T], Drop) {
	s.expire(now)
	if d := s.datagrams[k]; d != nil {
		return d, d.dead
	}
	if s.all.datagrams >= MaxDatagrams || s.shares[port].datagrams >= MaxDatagrams/PortShare {
		return nil, DropFull
	}
	d := s.newRecord()
	d.key, d.port, d.expires = k, port, now+int64(Timeout)
	s.datagrams[k] = d
	s.append(d)
	s.charge(port, share{datagrams: 1})
	return d, DropNone
}

// insert makes the fragment wait at index i of its datagram.
func (s *Fragments[T]) insert(d *Datagram[T], i int, a *Arrival, g *packet.Fragment, fill func(*T)) Drop {
	n := bufferFor(a.Frame.Len())
	if s.Owns(a.Frame) {
		n = len(a.Frame.Buffer())
	}
	if s.all.bytes+n > MaxBytes || s.shares[a.Port].bytes+n > MaxBytes/PortShare {
		return DropFull
	}
	f := a.Frame
	if !s.Owns(f) {
		if f = s.memory.get(f.Len()); f == nil {
			return DropFull
		}
		f.CopyFrom(a.Frame)
	}
	p := s.newPiece()
	p.Frame, p.at, p.l3, p.header, p.port = f, *g, a.Layers.L3, headerLen(g, a.Layers), a.Port
	fill(&p.Then)
	d.insert(i, p)
	s.charge(a.Port, share{pieces: 1, bytes: n})
	return DropNone
}

// kill drops the fragments of a datagram that cannot become whole. The datagram's later fragments
// are dropped for the same reason.
func (s *Fragments[T]) kill(d *Datagram[T], why Drop) {
	d.dead = why
	for _, p := range d.pieces {
		s.dropped(p, why)
		s.discharge(p)
		s.memory.put(p.Frame)
		s.freePiece(p)
	}
	clear(d.pieces)
	d.pieces = d.pieces[:0]
}

// removeDatagram removes a datagram from the store.
func (s *Fragments[T]) removeDatagram(d *Datagram[T]) {
	for _, p := range d.pieces {
		s.discharge(p)
	}
	delete(s.datagrams, d.key)
	s.unlink(d)
	s.charge(d.port, share{datagrams: -1})
}

// Expire drops the datagrams whose timeout has passed. The caller calls it about once a
// second, with or without traffic.
func (s *Fragments[T]) Expire(now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire(now)
}

func (s *Fragments[T]) expire(now int64) {
	for d := s.oldest; d != nil && d.expires <= now; d = s.oldest {
		s.kill(d, DropExpired)
		s.removeDatagram(d)
		s.freeRecord(d)
	}
}

// Release frees the record of a whole datagram. Its frames still belong to the caller, which
// releases them like any others.
func (s *Fragments[T]) Release(d *Datagram[T]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range d.pieces {
		s.freePiece(p)
	}
	s.freeRecord(d)
}

// Stats counts waiting fragments.
func (s *Fragments[T]) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Stats{Datagrams: s.all.datagrams, Fragments: s.all.pieces, Bytes: s.all.bytes, Completed: s.completed}
}

// charge adds to a port's use of the limits.
func (s *Fragments[T]) charge(port uint32, by share) {
	s.all.add(by)
	one := s.shares[port]
	one.add(by)
	s.shares[port] = one
	if one == (share{}) {
		delete(s.shares, port)
	}
}

func (s *Fragments[T]) discharge(p *Piece[T]) {
	s.charge(p.port, share{pieces: -1, bytes: -len(p.Frame.Buffer())})
}

func (s *share) add(by share) {
	s.datagrams += by.datagrams
	s.pieces += by.pieces
	s.bytes += by.bytes
}

// append appends a datagram to the ring.
func (s *Fragments[T]) append(d *Datagram[T]) {
	if s.oldest == nil {
		d.older, d.newer, s.oldest = d, d, d
		return
	}
	d.older, d.newer = s.oldest.older, s.oldest
	d.older.newer, d.newer.older = d, d
}

// unlink removes a datagram from the ring.
func (s *Fragments[T]) unlink(d *Datagram[T]) {
	d.older.newer, d.newer.older = d.newer, d.older
	switch {
	case d.newer == d:
		s.oldest = nil
	case s.oldest == d:
		s.oldest = d.newer
	}
}
