package server

import (
	"time"

	"github.com/antrail/antrail/vswitchd/jsonrpc"
	"github.com/antrail/antrail/vswitchd/ovsdb/datum"
	"github.com/antrail/antrail/vswitchd/ovsdb/store"
)

// waiting is a transaction that waits for rows.
type waiting struct{ canceled chan struct{} }

// transact runs a transaction, and replies at once or when its rows are there.
func (c *conn) transact(m *jsonrpc.Message) {
	d, err := c.database(m.Params)
	if err != nil {
		c.reply(m.ID, nil, err)
		return
	}
	begin := time.Now()
	o := d.Execute(m.Params[1:], c.caller(d, 0))
	if o.Retry == nil {
		c.reply(m.ID, o.Results, nil)
		return
	}
	w, err := c.beginWaiting(m.ID)
	if err != nil {
		c.reply(m.ID, nil, err)
		return
	}
	c.tasks.Go(func() { c.runWaiting(d, m, w, begin, o) })
}

// caller is what a transaction asks about this client.
func (c *conn) caller(d *store.Database, waited time.Duration) store.Caller {
	return store.Caller{
		Owns:     func(lock string) bool { return c.s.locks.owns(c, lock) },
		Waited:   waited,
		ReadOnly: d.Schema.Name == "_Server",
	}
}

// beginWaiting takes note of a transaction that waits.
func (c *conn) beginWaiting(id any) (*waiting, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) >= c.s.limits.Transactions {
		return nil, datum.Errorf("resources exhausted", "%d transactions of this client wait already", len(c.waiting))
	}
	if c.waiting[key(id)] != nil {
		return nil, datum.Syntaxf("a transaction with the id %s waits already", key(id))
	}
	w := &waiting{make(chan struct{})}
	c.waiting[key(id)] = w
	return w, nil
}

// runWaiting tries a transaction again after each commit, until it is done, its time is over
// or the client cancels it.
func (c *conn) runWaiting(d *store.Database, m *jsonrpc.Message, w *waiting, begin time.Time, o store.Outcome) {
	defer c.endWaiting(m.ID)
	for o.Retry != nil {
		if !w.waitFor(o) {
			c.send(jsonrpc.Failure(m.ID, "canceled"))
			return
		}
		o = d.Execute(m.Params[1:], c.caller(d, time.Since(begin)))
	}
	c.reply(m.ID, o.Results, nil)
}

// waitFor waits for the next commit or the end of the transaction's time. It reports false if
// the transaction was canceled.
func (w *waiting) waitFor(o store.Outcome) bool {
	var late <-chan time.Time
	if o.Left >= 0 {
		t := time.NewTimer(o.Left)
		defer t.Stop()
		late = t.C
	}
	select {
	case <-w.canceled:
		return false
	case <-o.Retry:
	case <-late:
	}
	return true
}

func (c *conn) endWaiting(id any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, key(id))
}

// cancel ends a transaction that waits. Its reply is the error "canceled".
func (c *conn) cancel(params []any) {
	if len(params) != 1 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := c.waiting[key(params[0])]; w != nil {
		w.cancel()
	}
}

// cancelAll ends all transactions that wait.
func (c *conn) cancelAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.waiting {
		w.cancel()
	}
}

// cancel may be called again. The connection's lock is held.
func (w *waiting) cancel() {
	select {
	case <-w.canceled:
	default:
		close(w.canceled)
	}
}
