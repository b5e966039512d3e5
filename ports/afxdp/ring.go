package afxdp

import (
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// ring is one of the four queues between the kernel and a socket. It has slots of T in shared
// memory, a producer's word and a consumer's word. The words count up and wrap at 32 bits. The
// invariants:
//
//  1. Each word has one writer. That writer may keep a copy of the other's word until the copy
//     says full or empty.
//  2. The producer fills slots before it stores its word. The consumer loads that word before it
//     reads slots, and stores its own after it has read them. So no slot is read before it is
//     filled, or filled before it is read.
//  3. Go's atomic loads and stores are at least acquire and release, so this order holds between
//     processors.
//  4. The copies (local, seen) are plain words, so all calls on one ring are made under one lock.
type ring[T any] struct {
	producer, consumer, flags *uint32
	slots                     []T
	mask                      uint32
	local                     uint32 // our word, possibly not yet stored
	seen                      uint32 // the other's word when it was last loaded
	memory                    []byte
}

// writable is how many slots the producer may fill, up to want.
func (r *ring[T]) writable(want int) int {
	size := uint32(len(r.slots))
	free := size - (r.local - r.seen)
	if free < uint32(want) {
		r.seen = atomic.LoadUint32(r.consumer)
		free = size - (r.local - r.seen)
	}
	return min(want, int(free))
}

// write fills the next slot. The caller has checked that it is writable.
func (r *ring[T]) write(v T) {
	r.slots[r.local&r.mask] = v
	r.local++
}

// submit shows the written slots to the kernel.
func (r *ring[T]) submit() { atomic.StoreUint32(r.producer, r.local) }

// readable is how many slots the consumer may read, up to want.
func (r *ring[T]) readable(want int) int {
	ready := r.seen - r.local
	if ready < uint32(want) {
		r.seen = atomic.LoadUint32(r.producer)
		ready = r.seen - r.local
	}
	return min(want, int(ready))
}

// read is the next slot. The caller has checked that it is readable.
func (r *ring[T]) read() T {
	v := r.slots[r.local&r.mask]
	r.local++
	return v
}

// release returns the slots that were read to the kernel.
func (r *ring[T]) release() { atomic.StoreUint32(r.consumer, r.local) }

// resume continues where another process has stopped. produces says that the producer's word is
// ours.
func (r *ring[T]) resume(produces bool) {
	ours, theirs := r.consumer, r.producer
	if produces {
		ours, theirs = theirs, ours
	}
	r.local, r.seen = atomic.LoadUint32(ours), atomic.LoadUint32(theirs)
}

// pending is how many slots the kernel has not consumed yet.
func (r *ring[T]) pending() uint32 { return r.local - atomic.LoadUint32(r.consumer) }

// needsWakeup says that the kernel handles this ring only when it is called
// (XDP_USE_NEED_WAKEUP).
func (r *ring[T]) needsWakeup() bool {
	return atomic.LoadUint32(r.flags)&unix.XDP_RING_NEED_WAKEUP != 0
}
