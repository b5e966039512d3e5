package packet

import "sync"

// HeapPool is a fixed number of frames in ordinary memory. The memory port, taps
// and tests use it where there is no UMEM. Any goroutine may call it. It locks
// once per batch.
type HeapPool struct {
	mu   sync.Mutex
	free []*Frame
}

// NewPool makes a pool of frames whose buffers are size bytes, headroom
// included.
func NewPool(frames, size int) *HeapPool { return NewPoolOver(make([]byte, frames*size), size) }

// NewPoolOver is NewPool over given memory: as many frames as it holds. The
// memory is in use as long as the pool, or one of its frames, can be reached.
func NewPoolOver(mem []byte, size int) *HeapPool {
	frames := len(mem) / size
	p := &HeapPool{free: make([]*Frame, frames)}
	all := make([]Frame, frames)
	for i := range all {
		all[i].Init(mem[i*size:(i+1)*size:(i+1)*size], p)
		all[i].Index = uint32(i)
		p.free[i] = &all[i]
	}
	return p
}

// Get fills batch with empty frames and returns their number: less than
// len(batch) if the pool runs out.
func (p *HeapPool) Get(batch []*Frame) int {
	p.mu.Lock()
	n := min(len(batch), len(p.free))
	rest := len(p.free) - n
	copy(batch, p.free[rest:])
	p.free = p.free[:rest]
	p.mu.Unlock()
	for _, f := range batch[:n] {
		f.Reset()
	}
	return n
}

// Put takes frames of this pool back.
func (p *HeapPool) Put(frames []*Frame) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.free)+len(frames) > cap(p.free) {
		panic("packet: a frame was released twice")
	}
	p.free = append(p.free, frames...)
}

// Free is the number of frames in the pool.
func (p *HeapPool) Free() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.free)
}
