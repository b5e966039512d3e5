package reassembly

import (
	"slices"
	"sync"

	"github.com/antrail/antrail/packet"
)

// pieceSizes are the sizes of the buffers of waiting fragments, in bytes with headroom. They fit
// an MTU of 1500, the chunks of AF_XDP, jumbo frames, and the largest frames of virtual links.
var pieceSizes = [...]int{2048, 4096, 10240, 16384, 32768, 66048}

// bufferFor is the size of the buffer for a frame of n bytes. It is 0 if no buffer is large
// enough.
func bufferFor(n int) int {
	i, _ := slices.BinarySearch(pieceSizes[:], n+packet.Headroom)
	if i == len(pieceSizes) {
		return 0
	}
	return pieceSizes[i]
}

// maxPieceMemory limits all buffers: those of waiting fragments, and as much again for fragments
// on their way out.
const maxPieceMemory = 2 * MaxBytes

// pieceMemory is the buffers of waiting fragments. A buffer is allocated when it is first needed.
// Any goroutine may call pieceMemory.
type pieceMemory struct {
	mu    sync.Mutex
	free  [len(pieceSizes)][]*packet.Frame
	bytes int // of all buffers, free or not
}

// get is an empty frame with room for n bytes, nil if there is none.
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

// makeRoom discards free buffers of other sizes until a buffer of n bytes may be allocated.
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

// Put returns frames to the memory.
func (m *pieceMemory) Put(frames []*packet.Frame) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range frames {
		m.addPiece(f)
	}
}

// put returns one frame to the memory.
func (m *pieceMemory) put(f *packet.Frame) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.addPiece(f)
}

func (m *pieceMemory) addPiece(f *packet.Frame) {
	i, _ := slices.BinarySearch(pieceSizes[:], len(f.Buffer()))
	m.free[i] = append(m.free[i], f)
}

// newPiece is an empty piece. It reuses a free one if possible.
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
