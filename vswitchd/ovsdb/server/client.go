package server

import (
	"errors"
	"io"
	"net"

	"github.com/antrail/antrail/vswitchd/jsonrpc"
	"github.com/antrail/antrail/vswitchd/ovsdb/datum"
	"github.com/antrail/antrail/vswitchd/ovsdb/store"
)

// client is a connection with its locks, monitors and transactions.
type client struct {
	*peer
	limits       Limits
	dbs          *databases
	locks        *lockTable
	monitors     monitors
	transactions transactions
}

func newClient(nc net.Conn, limits Limits, dbs *databases, locks *lockTable) *client {
	p := newPeer(nc, limits.Outbox)
	return &client{
		peer: p, limits: limits, dbs: dbs, locks: locks,
		monitors: monitors{p: p, max: limits.Monitors, byID: map[string]*monitor{}},
		transactions: transactions{
			p: p, max: limits.Transactions, waiting: map[string]*waiting{},
			owns: func(lock string) bool { return locks.owns(p, lock) },
		},
	}
}

// serve answers requests until the connection ends. The error is the client's fault; nil if it hung
// up.
func (c *client) serve() error {
	c.transactions.tasks.Go(c.runWriter)
	err := c.readRequests()
	c.close()
	c.locks.releaseAll(c.peer)
	c.monitors.stopAll()
	c.transactions.cancelAll()
	c.transactions.tasks.Wait()
	switch {
	case c.stalled.Load():
		return errStalled
	case errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed):
		return nil
	}
	return err
}

func (c *client) readRequests() error {
	r := jsonrpc.NewReader(c.nc, c.limits.Message)
	for c.out.WaitForSpace() {
		m, err := r.Next()
		if err != nil {
			return err
		}
		c.answer(m)
	}
	return nil
}

// methods are the requests whose replies may overtake updates.
var methods = map[string]func(*client, []any) (any, error){
	"echo":                func(_ *client, params []any) (any, error) { return params, nil },
	"list_dbs":            func(c *client, _ []any) (any, error) { return c.dbs.names(), nil },
	"get_schema":          (*client).getSchema,
	"get_server_id":       func(c *client, _ []any) (any, error) { return c.dbs.id.String(), nil },
	"set_db_change_aware": setDBChangeAware,
	"lock":                func(c *client, params []any) (any, error) { return c.lock(params, false) },
	"steal":               func(c *client, params []any) (any, error) { return c.lock(params, true) },
	"unlock":              (*client).unlock,
	"monitor_cond_change": func(c *client, params []any) (any, error) { return map[string]any{}, c.monitors.change(params) },
	"monitor_cancel":      func(c *client, params []any) (any, error) { return map[string]any{}, c.monitors.cancel(params) },
}

// onDatabase are the requests whose first parameter is a database. The functions send the reply.
var onDatabase = map[string]func(*client, *store.Database, *jsonrpc.Message) error{
	"transact": func(c *client, d *store.Database, m *jsonrpc.Message) error { return c.transactions.run(d, m) },
	"monitor": func(c *client, d *store.Database, m *jsonrpc.Message) error {
		return c.monitors.start(d, m, dialectUpdate)
	},
	"monitor_cond": func(c *client, d *store.Database, m *jsonrpc.Message) error {
		return c.monitors.start(d, m, dialectUpdate2)
	},
	"monitor_cond_since": func(c *client, d *store.Database, m *jsonrpc.Message) error {
		return c.monitors.start(d, m, dialectUpdate3)
	},
}

// answer carries out a message.
func (c *client) answer(m *jsonrpc.Message) {
	do, begin := methods[m.Method], onDatabase[m.Method]
	switch {
	case m.Method == "cancel" && !m.IsRequest():
		c.transactions.cancel(m.Params)
	case !m.IsRequest(): // a reply, or an unknown notification
	case begin != nil:
		d, err := c.dbs.findDatabase(m.Params)
		if err == nil {
			err = begin(c, d, m)
		}
		if err != nil {
			c.reply(m.ID, nil, err)
		}
	case do == nil:
		c.send(jsonrpc.Failure(m.ID, "unknown method"))
	default:
		result, err := do(c, m.Params)
		c.reply(m.ID, result, err)
	}
}

func (c *client) getSchema(params []any) (any, error) {
	d, err := c.dbs.findDatabase(params)
	if err != nil {
		return nil, err
	}
	return d.Schema.JSON(), nil
}

// setDBChangeAware checks its parameter. It has no effect, because the list of databases never
// changes.
func setDBChangeAware(_ *client, params []any) (any, error) {
	if len(params) == 1 {
		if _, ok := params[0].(bool); ok {
			return map[string]any{}, nil
		}
	}
	return nil, datum.Syntaxf("set_db_change_aware has one parameter, true or false")
}

func (c *client) lock(params []any, steal bool) (any, error) {
	name, err := lockName(params)
	if err != nil {
		return nil, err
	}
	locked, err := c.locks.request(c.peer, name, steal)
	return map[string]any{"locked": locked}, err
}

func (c *client) unlock(params []any) (any, error) {
	name, err := lockName(params)
	if err == nil && !c.locks.release(c.peer, name) {
		err = datum.Syntaxf("the client has not asked for the lock %q", name)
	}
	return map[string]any{}, err
}

func lockName(params []any) (string, error) {
	if len(params) == 1 {
		if s, ok := params[0].(string); ok {
			return s, nil
		}
	}
	return "", datum.Syntaxf("the name of a lock is expected as the one parameter")
}
