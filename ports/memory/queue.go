package memory

import (
	"sync"

	"github.com/antrail/antrail/packet"
)

// queue is a bounded first-in first-out queue of frames in a ring of slots.
type queue struct {
	mu         sync.Mutex
	slots      []*packet.Frame
	head, used int
	closed     bool
}

func newQueue(size int) *queue { return &queue{slots: make([]*packet.Frame, size)} }

// push appends as many frames as there is room for and returns how many.
func (q *queue) push(frames []*packet.Frame) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return 0
	}
	n := min(len(frames), len(q.slots)-q.used)
	for i, f := range frames[:n] {
		q.slots[(q.head+q.used+i)%len(q.slots)] = f
	}
	q.used += n
	return n
}

// pop moves up to len(batch) frames into batch and returns how many.
func (q *queue) pop(batch []*packet.Frame) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(len(batch), q.used)
	for i := range n {
		slot := (q.head + i) % len(q.slots)
		batch[i], q.slots[slot] = q.slots[slot], nil
	}
	q.head = (q.head + n) % len(q.slots)
	q.used -= n
	return n
}

// shut closes the queue for good and returns its frames.
func (q *queue) shut() []*packet.Frame {
	q.mu.Lock()
	q.closed = true
	left := make([]*packet.Frame, q.used)
	q.mu.Unlock()
	return left[:q.pop(left)]
}
