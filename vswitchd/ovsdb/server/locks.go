package server

import (
	"slices"
	"sync"

	"github.com/antrail/antrail/vswitchd/jsonrpc"
	"github.com/antrail/antrail/vswitchd/ovsdb/datum"
)

// lockTable has a queue of clients for each requested lock. The first client owns the lock (RFC 7047
// section 4.1.8).
type lockTable struct {
	max int // of a client

	mu     sync.Mutex
	queues map[string][]*peer
}

// request adds a client to the queue of a lock. With steal the client owns it at once, and the
// previous owner is the next in the queue.
func (t *lockTable) request(p *peer, name string, steal bool) (owns bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	queue := t.queues[name]
	if slices.Contains(queue, p) {
		return false, datum.Syntaxf("the client has already requested the lock %q: unlock it first", name)
	}
	if t.countLocks(p) >= t.max {
		return false, datum.Errorf("resources exhausted", "the client has already requested %d locks", t.max)
	}
	if steal && len(queue) > 0 {
		queue[0].send(jsonrpc.Notification("stolen", name))
		t.queues[name] = slices.Insert(queue, 0, p)
		return true, nil
	}
	t.queues[name] = append(queue, p)
	return len(queue) == 0, nil
}

// countLocks counts the locks that a client owns or waits for.
func (t *lockTable) countLocks(p *peer) (n int) {
	for _, queue := range t.queues {
		if slices.Contains(queue, p) {
			n++
		}
	}
	return n
}

func (t *lockTable) owns(p *peer, name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	queue := t.queues[name]
	return len(queue) > 0 && queue[0] == p
}

// release removes a client from a lock's queue, and notifies a new owner. It reports false if the
// client was not in the queue.
func (t *lockTable) release(p *peer, name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.releaseLocked(p, name)
}

func (t *lockTable) releaseLocked(p *peer, name string) bool {
	queue := t.queues[name]
	at := slices.Index(queue, p)
	if at < 0 {
		return false
	}
	queue = slices.Delete(queue, at, at+1)
	if len(queue) == 0 {
		delete(t.queues, name)
		return true
	}
	t.queues[name] = queue
	if at == 0 {
		queue[0].send(jsonrpc.Notification("locked", name))
	}
	return true
}

// releaseAll removes a disconnected client from all queues.
func (t *lockTable) releaseAll(p *peer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name := range t.queues {
		t.releaseLocked(p, name)
	}
}
