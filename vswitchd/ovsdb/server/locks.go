package server

import (
	"slices"
	"sync"

	"github.com/antrail/antrail/vswitchd/jsonrpc"
	"github.com/antrail/antrail/vswitchd/ovsdb/datum"
)

// lockTable has, for each lock that somebody wants, the clients that want it. The first one
// owns it (RFC 7047 section 4.1.8).
type lockTable struct {
	mu     sync.Mutex
	queues map[string][]*conn
}

func (c *conn) lock(params []any, steal bool) (any, error) {
	name, err := oneText(params, "the name of a lock")
	if err != nil {
		return nil, err
	}
	locked, err := c.s.locks.take(c, name, steal)
	return map[string]any{"locked": locked}, err
}

// take makes a client wait for a lock, or own it.
func (t *lockTable) take(c *conn, name string, steal bool) (owns bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	queue := t.queues[name]
	if slices.Contains(queue, c) {
		return false, datum.Syntaxf("the client has asked for the lock %q already: it must unlock it first", name)
	}
	if t.held(c) >= c.s.limits.Monitors {
		return false, datum.Errorf("resources exhausted", "the client has asked for %d locks already", c.s.limits.Monitors)
	}
	if t.queues == nil {
		t.queues = map[string][]*conn{}
	}
	if steal && len(queue) > 0 {
		queue[0].send(jsonrpc.Notification("stolen", name))
		t.queues[name] = slices.Insert(queue, 0, c)
		return true, nil
	}
	t.queues[name] = append(queue, c)
	return len(queue) == 0, nil
}

// held counts the locks that a client owns or waits for.
func (t *lockTable) held(c *conn) (n int) {
	for _, queue := range t.queues {
		if slices.Contains(queue, c) {
			n++
		}
	}
	return n
}

func (t *lockTable) owns(c *conn, name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	queue := t.queues[name]
	return len(queue) > 0 && queue[0] == c
}

func (c *conn) unlock(params []any) (any, error) {
	name, err := oneText(params, "the name of a lock")
	if err == nil && !c.s.locks.release(c, name) {
		err = datum.Syntaxf("the client has not asked for the lock %q", name)
	}
	return map[string]any{}, err
}

// release takes a client out of a lock's queue, and tells the next one that it owns the lock.
func (t *lockTable) release(c *conn, name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.leave(c, name)
}

func (t *lockTable) leave(c *conn, name string) bool {
	queue := t.queues[name]
	at := slices.Index(queue, c)
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

// releaseAll takes a client that is gone out of all queues.
func (t *lockTable) releaseAll(c *conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name := range t.queues {
		t.leave(c, name)
	}
}
