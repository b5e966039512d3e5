package server

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/antrail/antrail/vswitchd/jsonrpc"
	"github.com/antrail/antrail/vswitchd/ovsdb/datum"
)

// conn is a client's connection.
type conn struct {
	s   *Server
	nc  net.Conn
	out *jsonrpc.Outbox

	mu       sync.Mutex
	monitors map[string]*monitor // by their ids as text
	waiting  map[string]*waiting // by the ids of their requests as text
	stalled  bool
	tasks    sync.WaitGroup // of transactions that wait
}

func newConn(s *Server, nc net.Conn) *conn {
	return &conn{s: s, nc: nc, out: jsonrpc.NewOutbox(s.limits.Outbox), monitors: map[string]*monitor{}, waiting: map[string]*waiting{}}
}

// errStalled says why a client was disconnected that does not read.
var errStalled = errors.New("it does not read its updates")

// serve answers requests until the connection ends. The error says what the client did wrong.
func (c *conn) serve() error {
	c.tasks.Go(c.runWriter)
	err := c.read()
	c.close()
	c.s.locks.releaseAll(c)
	for _, m := range c.takeMonitors() {
		m.stop()
	}
	c.cancelAll()
	c.tasks.Wait()
	if c.isStalled() {
		return errStalled
	}
	if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// close ends the connection. Whoever reads or writes returns.
func (c *conn) close() {
	c.out.Close()
	_ = c.nc.Close()
}

// runWriter sends what is in the outbox.
func (c *conn) runWriter() {
	if c.out.Run(c.nc) != nil {
		c.close()
	}
}

func (c *conn) read() error {
	r := jsonrpc.NewReader(c.nc, c.s.limits.Message)
	for c.out.WaitForSpace() {
		m, err := r.Next()
		if err != nil {
			return err
		}
		c.answer(m)
	}
	return nil
}

// send puts a message into the outbox. A client whose outbox is full is disconnected. A
// caller may hold a database's lock.
func (c *conn) send(v any) {
	if c.out.Put(v) {
		return
	}
	c.mu.Lock()
	c.stalled = true
	c.mu.Unlock()
	c.close()
}

func (c *conn) isStalled() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stalled
}

// answer does what a message asks for.
func (c *conn) answer(m *jsonrpc.Message) {
	do := methods[m.Method]
	speak, isMonitor := dialects[m.Method]
	switch {
	case m.Method == "cancel" && !m.IsRequest():
		c.cancel(m.Params)
	case !m.IsRequest(): // a reply, or a notification that asks for nothing
	case m.Method == "transact":
		c.transact(m)
	case isMonitor:
		if err := c.monitor(m.ID, m.Params, speak); err != nil {
			c.reply(m.ID, nil, err)
		}
	case do == nil:
		c.send(jsonrpc.Failure(m.ID, "unknown method"))
	default:
		result, err := do(c, m.Params)
		c.reply(m.ID, result, err)
	}
}

// reply answers a request.
func (c *conn) reply(id, result any, err error) {
	switch e := err.(type) {
	case nil:
		c.send(jsonrpc.Reply(id, result))
	case *datum.Error:
		c.send(jsonrpc.Failure(id, e.JSON()))
	default:
		c.send(jsonrpc.Failure(id, err.Error()))
	}
}

// key is an id, which may be any JSON value, as a key of a map.
func key(id any) string {
	b, err := jsonrpc.Encode(id)
	if err != nil {
		return fmt.Sprint(id)
	}
	return string(b)
}
