package ofserver

import "sync"

const (
	// maxUpdates is how many bytes of updates wait for a controller that does not read before its
	// monitors pause. It is that of Open vSwitch.
	maxUpdates = 128 << 10
	// maxRemoved bounds the updates of entries that are removed during a pause. Beyond it the
	// controller loses its connection.
	maxRemoved = 16 << 20
)

// updateQueue holds what the flow monitors of a connection tell, until it is written. Any
// goroutine may use it; one takes from it.
type updateQueue struct {
	mu       sync.Mutex
	changed  sync.Cond
	messages [][]byte
	bytes    int
	held     bool
	busy     bool   // a message is being written, or the monitors are going on
	pausedAt uint64 // the newest change when the monitors paused; 0 if they do not
	ended    bool
}

func newUpdateQueue() *updateQueue {
	u := &updateQueue{}
	u.changed.L = &u.mu
	return u
}

// hold has next wait until release.
func (u *updateQueue) hold() { u.set(func() { u.held = true }) }

func (u *updateQueue) release() { u.set(func() { u.held = false }) }

// end has next and drain return.
func (u *updateQueue) end() { u.set(func() { u.ended = true }) }

func (u *updateQueue) set(f func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	f()
	u.changed.Broadcast()
}

func (u *updateQueue) put(b []byte) {
	u.set(func() {
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

// pauseIfFull pauses the monitors if too much waits. It is not ok if more waits than a pause may
// hold.
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

// next waits for a message. drained says that there is none, and that the monitors go on.
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

// written says that a message has been written.
func (u *updateQueue) written(b []byte) { u.set(func() { u.bytes -= len(b) }) }

// resume ends a pause, and returns since when it was.
func (u *updateQueue) resume() (pausedAt uint64) {
	u.set(func() { pausedAt, u.pausedAt = u.pausedAt, 0 })
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
