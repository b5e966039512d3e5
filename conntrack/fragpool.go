package conntrack

import (
	"slices"
	"sync"

	"github.com/antrail/antrail/packet"
)

// pieceSizes are the buffers that fragments wait in, in bytes with headroom: for
// an MTU of 1500, for the chunks of AF_XDP, for jumbo frames, and for whatever a
// virtual link lets through.
var pieceSizes = [...]int{2048, 4096, 10240, 16384, 32768, 66048}

// bufferFor is the size of buffer that a frame of n bytes waits in; 0 when
// there is none.
func bufferFor(n int) int {
	i, _ := slices.BinarySearch(pieceSizes[:], n+packet.Headroom)
	if i == len(pieceSizes) {
		return 0
	}
	return pieceSizes[i]
}

// maxPieceMemory bounds what there is of buffers: those in which fragments wait
// and as much again for those on their way out.
const maxPieceMemory = 2 * MaxFragmentBytes

// pieceMemory is the buffers of waiting fragments. They are made when they are
// first needed. Any goroutine may call it.
type pieceMemory struct {
	mu    sync.Mutex
	free  [len(pieceSizes)][]*packet.Frame
	bytes int // of all buffers, free or not
}

// get is an empty frame with room for n bytes; nil when there is none.
func (m *pieceMemory) get(n int) *packet.Frame {
	i, _ := slices.BinarySearch(pieceSizes[:], n+packet.Headroom)
	if i == len(pieceSizes) {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if last := len(m.free[i]) - 1; last >= 0 {
		f := m.free[i][last]
		m.free[i] = m.free[i][:last]
		f.Reset()
		return f
	}
	if !m.makeRoom(pieceSizes[i]) {
		return nil
	}
	m.bytes += pieceSizes[i]
	return packet.NewFrame(make([]byte, pieceSizes[i]), m)
}

// makeRoom throws free buffers of other sizes away until one of n bytes may be
// made.
func (m *pieceMemory) makeRoom(n int) bool {
	for i := range m.free {
		for m.bytes+n > maxPieceMemory && len(m.free[i]) > 0 {
			last := len(m.free[i]) - 1
			m.free[i][last] = nil
			m.free[i] = m.free[i][:last]
			m.bytes -= pieceSizes[i]
		}
	}
	return m.bytes+n <= maxPieceMemory
}

// Put takes frames back.
func (m *pieceMemory) Put(frames []*packet.Frame) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range frames {
		m.add(f)
	}
}

// put takes one frame back.
func (m *pieceMemory) put(f *packet.Frame) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.add(f)
}

func (m *pieceMemory) add(f *packet.Frame) {
	i, _ := slices.BinarySearch(pieceSizes[:], len(f.Buffer()))
	m.free[i] = append(m.free[i], f)
}

// newPiece is a piece, one used before if there is one.
func (s *Fragments[T]) newPiece() *Piece[T] {
	if last := len(s.pieces) - 1; last >= 0 {
		p := s.pieces[last]
		s.pieces = s.pieces[:last]
		return p
	}
	return new(Piece[T])
}

func (s *Fragments[T]) freePiece(p *Piece[T]) {
	*p = Piece[T]{}
	s.pieces = append(s.pieces, p)
}

func (s *Fragments[T]) newRecord() *Datagram[T] {
	if last := len(s.records) - 1; last >= 0 {
		d := s.records[last]
		s.records = s.records[:last]
		return d
	}
	return new(Datagram[T])
}

func (s *Fragments[T]) freeRecord(d *Datagram[T]) {
	clear(d.pieces)
	*d = Datagram[T]{pieces: d.pieces[:0]}
	s.records = append(s.records, d)
}
