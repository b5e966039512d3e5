package ofserver

import "sync"

const (
	// maxUpdates is how many bytes of updates may wait before the monitors pause. Open vSwitch has the
	// same limit.
	maxUpdates = 128 << 10
	// maxRemoved bounds the updates of entries that are removed during a pause. Beyond it the
	// controller loses its connection.
	maxRemoved = 16 << 20
)

// updateQueue holds the updates of a connection's flow monitors until they are written. Any
// goroutine may use it, but only one may call next.
type updateQueue struct {
	mu       sync.Mutex
	changed  sync.Cond
	messages [][]byte
	bytes    int
	held     bool
	busy     bool   // a message is being written, or the monitors are resuming
	pausedAt uint64 // the newest change when the monitors paused; 0 if they do not
	ended    bool
}

func newUpdateQueue() *updateQueue {
	u := &updateQueue{}
	u.changed.L = &u.mu
	return u
}

// holdBack makes next wait until release.
func (u *updateQueue) holdBack() { u.locked(func() { u.held = true }) }

func (u *updateQueue) release() { u.locked(func() { u.held = false }) }

// close makes next and drain return.
func (u *updateQueue) close() { u.locked(func() { u.ended = true }) }

func (u *updateQueue) locked(f func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	f()
	u.changed.Broadcast()
}

func (u *updateQueue) enqueue(b []byte) {
	u.locked(func() {
		u.messages = append(u.messages, b)
		u.bytes += len(b)
	})
}

// pausedSince is the number of the newest change when the monitors paused; 0 if they do not.
func (u *updateQueue) pausedSince() uint64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.pausedAt
}

// pauseIfFull pauses the monitors if more than maxUpdates wait, and queues the message about it. ok
// is false if more than maxRemoved wait.
func (u *updateQueue) pauseIfFull(now uint64, message func() []byte) (ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.pausedAt == 0 && u.bytes > maxUpdates {
		b := message()
		u.messages = append(u.messages, b)
		u.bytes += len(b)
		u.pausedAt = now
	}
	return u.bytes <= maxRemoved
}

// next waits for a message. drained is set if there is none and the monitors may resume. ok is false
// after close.
func (u *updateQueue) next() (b []byte, drained, ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for u.busy = false; ; u.changed.Wait() {
		switch {
		case u.ended:
			return nil, false, false
		case u.held:
		case len(u.messages) > 0:
			u.busy = true
			b, u.messages = u.messages[0], u.messages[1:]
			return b, false, true
		case u.pausedAt != 0:
			u.busy = true
			return nil, true, true
		}
		u.changed.Broadcast() // drain may wait
	}
}

// markWritten subtracts a written message.
func (u *updateQueue) markWritten(b []byte) { u.locked(func() { u.bytes -= len(b) }) }

// resume ends a pause, and returns its pausedAt.
func (u *updateQueue) resume() (pausedAt uint64) {
	u.locked(func() { pausedAt, u.pausedAt = u.pausedAt, 0 })
	return pausedAt
}

// drain waits until all updates have been written.
func (u *updateQueue) drain() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for !u.ended && (u.busy || len(u.messages) > 0) {
		u.changed.Wait()
	}
}
