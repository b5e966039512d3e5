package server

import (
	"sync"
	"time"

	"github.com/antrail/antrail/vswitchd/jsonrpc"
	"github.com/antrail/antrail/vswitchd/ovsdb/datum"
	"github.com/antrail/antrail/vswitchd/ovsdb/store"
)

// transactions runs the transactions of a client, and has those that wait for rows.
type transactions struct {
	p     *peer
	max   int
	owns  func(lock string) bool
	tasks sync.WaitGroup // of transactions that wait

	mu      sync.Mutex
	waiting map[string]*waiting // by the ids of their requests as text
}

// waiting is a transaction that waits for rows.
type waiting struct{ canceled chan struct{} }

// run runs a transaction. It replies at once, or later if the transaction waits for rows.
func (t *transactions) run(d *store.Database, m *jsonrpc.Message) error {
	begin := time.Now()
	o := d.Execute(m.Params[1:], t.caller(d, 0))
	if o.Retry == nil {
		t.p.reply(m.ID, o.Results, nil)
		return nil
	}
	w, err := t.addWaiting(m.ID)
	if err != nil {
		return err
	}
	t.tasks.Go(func() { t.runWaiting(d, m, w, begin, o) })
	return nil
}

// caller describes this client for a transaction.
func (t *transactions) caller(d *store.Database, waited time.Duration) store.Caller {
	return store.Caller{Owns: t.owns, Waited: waited, ReadOnly: d.Schema.Name == "_Server"}
}

// addWaiting registers a transaction that waits.
func (t *transactions) addWaiting(id any) (*waiting, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) >= t.max {
		return nil, datum.Errorf("resources exhausted", "%d transactions of this client wait already", len(t.waiting))
	}
	if t.waiting[key(id)] != nil {
		return nil, datum.Syntaxf("a transaction with the id %s waits already", key(id))
	}
	w := &waiting{make(chan struct{})}
	t.waiting[key(id)] = w
	return w, nil
}

// runWaiting runs a transaction again after each commit, until it is done, its timeout passes or the
// client cancels it.
func (t *transactions) runWaiting(d *store.Database, m *jsonrpc.Message, w *waiting, begin time.Time, o store.Outcome) {
	canceled := false
	for o.Retry != nil && !canceled {
		if canceled = !w.waitFor(o); !canceled {
			o = d.Execute(m.Params[1:], t.caller(d, time.Since(begin)))
		}
	}
	t.remove(m.ID) // before the reply, which lets the client begin the next
	if canceled {
		t.p.send(jsonrpc.Failure(m.ID, "canceled"))
		return
	}
	t.p.reply(m.ID, o.Results, nil)
}

// waitFor waits for the next commit or the transaction's timeout. It reports false if the
// transaction was canceled.
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

func (t *transactions) remove(id any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.waiting, key(id))
}

// cancel ends a transaction that waits. Its reply is the error "canceled".
func (t *transactions) cancel(params []any) {
	if len(params) != 1 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if w := t.waiting[key(params[0])]; w != nil {
		w.cancel()
	}
}

// cancelAll ends all transactions that wait.
func (t *transactions) cancelAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, w := range t.waiting {
		w.cancel()
	}
}

// cancel may be called again. The lock is held.
func (w *waiting) cancel() {
	select {
	case <-w.canceled:
	default:
		close(w.canceled)
	}
}
