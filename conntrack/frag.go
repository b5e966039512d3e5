package conntrack

import (
	"sync"
	"time"

	"github.com/antrail/antrail/packet"
)

// Fragments. Only a whole datagram can be tracked, so a ct() that gets a
// fragment waits for the others (CT-35):
//
//	frag.go       who waits: datagrams by key, their limits and their end
//	fragjoin.go   where a fragment belongs in its datagram, or why nowhere
//	fragwhole.go  ct() on the whole datagram, its answer written to every fragment
//	fragpool.go   the memory that fragments wait in
//
// A fragment waits in memory of the store, not in its port's: a pod that sends
// half datagrams must not starve a ring, least of all the card's, which all
// share.
//
// A datagram that can no longer become whole (an overlap, a limit) gives its
// fragments up at once, but stays known until its time is up, so that what still
// comes of it is refused and does not wait in vain.

// Limits of fragments that wait (CT-36).
const (
	MaxDatagrams      = 1024             // known at a time
	MaxFragments      = 64               // of one datagram
	MaxFragmentBytes  = 4 << 20          // of memory that waiting fragments take
	FragmentPortShare = 8                // one port may use an eighth of datagrams and memory
	FragmentTimeout   = 15 * time.Second // from the first fragment of a datagram on
	MinFragment       = 256              // bytes of an IP packet that is not its datagram's last
	MaxDatagram       = 65535            // bytes, as the length field of the whole would count them
)

// FragDrop is why a fragment cannot wait, or waited in vain.
type FragDrop uint8

// The reasons.
const (
	// FragWaits: no reason; the fragment waits.
	FragWaits FragDrop = iota
	// FragShape: a fragment that cannot be one, or is not the last and too
	// small (MinFragment).
	FragShape
	// FragTooLong: the datagram would be longer than MaxDatagram.
	FragTooLong
	// FragTooMany: the datagram has more than MaxFragments.
	FragTooMany
	// FragOverlap: two fragments of the datagram overlap or contradict each
	// other.
	FragOverlap
	// FragDuplicate: the very fragment waits already.
	FragDuplicate
	// FragFull: no room is left for waiting fragments, or none for those of
	// this port.
	FragFull
	// FragExpired: the others did not come within FragmentTimeout.
	FragExpired
)

// Fragments holds fragments until their datagrams are whole. T is what their
// holder needs to go on with each. Any goroutine may call it.
type Fragments[T any] struct {
	lost func(*Piece[T], FragDrop)

	mu        sync.Mutex
	memory    pieceMemory
	datagrams map[fragKey]*Datagram[T]
	oldest    *Datagram[T] // in a ring by age; nil when there is none
	shares    map[uint32]share
	all       share
	pieces    []*Piece[T]    // free ones
	records   []*Datagram[T] // free ones
	completed uint64
}

// share is what a port, or all of them, use of the limits.
type share struct{ datagrams, pieces, bytes int }

// fragKey says which fragments belong together. For IPv6 it has no protocol:
// only the first fragment's counts (RFC 8200, section 4.5).
type fragKey struct {
	src, dst address
	id       uint32
	zone     uint16
	proto    uint8
	family   family
}

// Piece is a fragment that waits.
type Piece[T any] struct {
	Frame *packet.Frame
	Then  T

	at     packet.Fragment
	l3     int
	header int // headerLen
	port   uint32
}

// Datagram is a datagram of which fragments wait.
type Datagram[T any] struct {
	key     fragKey
	pieces  []*Piece[T] // by offset
	held    int         // bytes of the datagram that are there
	total   int         // bytes of the whole datagram, 0 while unknown
	expires int64
	dead    FragDrop // why it can no longer become whole
	port    uint32   // that brought the first
	older   *Datagram[T]
	newer   *Datagram[T]
}

// Pieces is the datagram's fragments in order.
func (d *Datagram[T]) Pieces() []*Piece[T] { return d.pieces }

// FragmentStats is what waits now, and how many datagrams became whole.
type FragmentStats struct {
	Datagrams int    `json:"datagrams"`
	Fragments int    `json:"fragments"`
	Bytes     int    `json:"bytes"` // of memory
	Completed uint64 `json:"completed"`
}

// Arrival is a fragment that came to a ct() action: in Frame, whose headers lie
// where Layers says, in Zone, from Port.
type Arrival struct {
	Frame  *packet.Frame
	Layers *packet.Layers
	Zone   uint16
	Port   uint32
}

// NewFragments makes an empty store. It calls lost, which must not call back,
// for each fragment that waited in vain.
func NewFragments[T any](lost func(*Piece[T], FragDrop)) *Fragments[T] {
	return &Fragments[T]{lost: lost, datagrams: map[fragKey]*Datagram[T]{}, shares: map[uint32]share{}}
}

// Owns says whether a frame is the store's own: one that has waited before. Add
// takes such a frame over; of another one it keeps a copy.
func (s *Fragments[T]) Owns(f *packet.Frame) bool { return f.Pool() == packet.Pool(&s.memory) }

// Add lets a fragment wait, unless there is a reason not to; a refused frame
// stays the caller's. fill writes what its holder needs to go on with it. When
// the fragment makes its datagram whole, the datagram is returned, and belongs
// to the caller until Release. now is on the clock of Config.Now.
func (s *Fragments[T]) Add(a *Arrival, now int64, fill func(*T)) (*Datagram[T], FragDrop) {
	g, drop := a.fragment()
	if drop != FragWaits {
		return nil, drop
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	d, drop := s.find(a.key(&g), a.Port, now)
	if drop != FragWaits {
		return nil, drop
	}
	i, drop := d.place(a, &g)
	if drop == FragWaits {
		drop = s.insert(d, i, a, &g, fill)
	}
	if drop != FragWaits && drop != FragDuplicate {
		s.kill(d, drop)
	}
	if drop != FragWaits || !d.whole() {
		return nil, drop
	}
	s.forget(d)
	s.completed++
	return d, FragWaits
}

// key is the datagram that a fragment belongs to.
func (a *Arrival) key(g *packet.Fragment) fragKey {
	b := a.Frame.Bytes()[a.Layers.L3:]
	k := key{zone: a.Zone}
	if a.Layers.EtherType == packet.EtherTypeIPv4 {
		k.readIPv4(packet.IPv4(b))
	} else {
		k.readIPv6(packet.IPv6(b), 0)
	}
	return fragKey{src: k.src, dst: k.dst, id: g.ID, zone: k.zone, proto: k.proto, family: k.family}
}

// find is the datagram of a key, a new one if need be.
func (s *Fragments[T]) find(k fragKey, port uint32, now int64) (*Datagram[T], FragDrop) {
	s.expire(now)
	if d := s.datagrams[k]; d != nil {
		return d, d.dead
	}
	if s.all.datagrams >= MaxDatagrams || s.shares[port].datagrams >= MaxDatagrams/FragmentPortShare {
		return nil, FragFull
	}
	d := s.newRecord()
	d.key, d.port, d.expires = k, port, now+int64(FragmentTimeout)
	s.datagrams[k] = d
	s.append(d)
	s.charge(port, share{datagrams: 1})
	return d, FragWaits
}

// insert lets the fragment wait at index i of its datagram.
func (s *Fragments[T]) insert(d *Datagram[T], i int, a *Arrival, g *packet.Fragment, fill func(*T)) FragDrop {
	n := bufferFor(a.Frame.Len())
	if s.Owns(a.Frame) {
		n = len(a.Frame.Buffer())
	}
	if s.all.bytes+n > MaxFragmentBytes || s.shares[a.Port].bytes+n > MaxFragmentBytes/FragmentPortShare {
		return FragFull
	}
	f := a.Frame
	if !s.Owns(f) {
		if f = s.memory.get(f.Len()); f == nil {
			return FragFull
		}
		f.CopyFrom(a.Frame)
	}
	p := s.newPiece()
	p.Frame, p.at, p.l3, p.header, p.port = f, *g, a.Layers.L3, headerLen(g, a.Layers), a.Port
	fill(&p.Then)
	d.insert(i, p)
	s.charge(a.Port, share{pieces: 1, bytes: n})
	return FragWaits
}

// kill gives up what waits of a datagram that cannot become whole; what comes
// of it later is refused for the same reason.
func (s *Fragments[T]) kill(d *Datagram[T], why FragDrop) {
	d.dead = why
	for _, p := range d.pieces {
		s.lost(p, why)
		s.discharge(p)
		s.memory.put(p.Frame)
		s.freePiece(p)
	}
	clear(d.pieces)
	d.pieces = d.pieces[:0]
}

// forget makes a datagram unknown.
func (s *Fragments[T]) forget(d *Datagram[T]) {
	for _, p := range d.pieces {
		s.discharge(p)
	}
	delete(s.datagrams, d.key)
	s.unlink(d)
	s.charge(d.port, share{datagrams: -1})
}

// Expire gives up the datagrams whose time has passed. Whoever holds a store
// calls it every second or so, traffic or not.
func (s *Fragments[T]) Expire(now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire(now)
}

func (s *Fragments[T]) expire(now int64) {
	for d := s.oldest; d != nil && d.expires <= now; d = s.oldest {
		s.kill(d, FragExpired)
		s.forget(d)
		s.freeRecord(d)
	}
}

// Release takes the record of a whole datagram back. Its frames are the
// caller's, who releases them like any other.
func (s *Fragments[T]) Release(d *Datagram[T]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range d.pieces {
		s.freePiece(p)
	}
	s.freeRecord(d)
}

// Stats is what waits now.
func (s *Fragments[T]) Stats() FragmentStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return FragmentStats{Datagrams: s.all.datagrams, Fragments: s.all.pieces, Bytes: s.all.bytes, Completed: s.completed}
}

// charge adds to what a port uses.
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

// append puts a datagram behind the others in the ring.
func (s *Fragments[T]) append(d *Datagram[T]) {
	if s.oldest == nil {
		d.older, d.newer, s.oldest = d, d, d
		return
	}
	d.older, d.newer = s.oldest.older, s.oldest
	d.older.newer, d.newer.older = d, d
}

// unlink takes a datagram out of the ring.
func (s *Fragments[T]) unlink(d *Datagram[T]) {
	d.older.newer, d.newer.older = d.newer, d.older
	switch {
	case d.newer == d:
		s.oldest = nil
	case s.oldest == d:
		s.oldest = d.newer
	}
}
