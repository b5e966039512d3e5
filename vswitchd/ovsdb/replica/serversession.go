package replica

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/antrail/antrail/vswitchd/jsonrpc"
	"github.com/antrail/antrail/vswitchd/ovsdb/schema"
)

const (
	// callTime is how long the server may take to answer.
	callTime = 30 * time.Second
	// maxMessage bounds a message of the server: the rows of a whole database.
	maxMessage = 64 << 20
	// maxUpdates is how many updates may wait until they are applied.
	maxUpdates = 4096
	// monitorID names the monitor.
	monitorID = "antrail"
)

// session is one connection.
type session struct {
	conn    net.Conn
	has     columns
	initial map[string]any
	updates chan map[string]any
	ended   chan struct{} // closed when the server has hung up

	writing sync.Mutex
	mu      sync.Mutex
	last    int
	waiting map[string]chan *jsonrpc.Message // by the request's id
	why     error                            // why the session has ended
}

// openSession connects, takes the lock, and monitors the columns that both sides know.
func openSession(ctx context.Context, path string, s *schema.Database, lock string) (*session, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	n := &session{
		conn: conn, updates: make(chan map[string]any, maxUpdates), ended: make(chan struct{}),
		waiting: map[string]chan *jsonrpc.Message{},
	}
	go n.runReader()
	if err := n.prepare(s, lock); err != nil {
		n.close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return n, nil
}

// prepare takes the lock, requests the schema and begins the monitor.
func (n *session) prepare(s *schema.Database, lock string) error {
	answer, err := n.call("lock", lock)
	if err != nil {
		return err
	}
	if locked, _ := member(answer, "locked").(bool); !locked {
		return fmt.Errorf("another process has the lock %s: an ovs-vswitchd or antrail vswitchd follows the rows", lock)
	}
	theirs, err := n.call("get_schema", s.Name)
	if err != nil {
		return err
	}
	n.has = commonColumns(s, theirs)
	rows, err := n.call("monitor", s.Name, monitorID, n.has.monitorRequests())
	if err != nil {
		return err
	}
	var ok bool
	if n.initial, ok = rows.(map[string]any); !ok {
		return errors.New("the server's reply to a monitor request has no rows")
	}
	return nil
}

func (n *session) close() { n.conn.Close() }

// follow calls apply with each update until the connection ends, apply fails or ctx ends.
func (n *session) follow(ctx context.Context, apply func(map[string]any) error) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case u := <-n.updates:
			if err := apply(u); err != nil {
				return err
			}
		case <-n.ended:
			n.mu.Lock()
			defer n.mu.Unlock()
			return n.why
		}
	}
}

// call sends a request and waits for its answer.
func (n *session) call(method string, params ...any) (any, error) {
	answer := make(chan *jsonrpc.Message, 1)
	n.mu.Lock()
	n.last++
	id := fmt.Sprint(n.last)
	n.waiting[id] = answer
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		delete(n.waiting, id)
		n.mu.Unlock()
	}()
	if err := n.write(map[string]any{"method": method, "params": params, "id": id}); err != nil {
		return nil, err
	}
	select {
	case m := <-answer:
		if m.Error != nil {
			return nil, fmt.Errorf("%s: %v", method, m.Error)
		}
		return m.Result, nil
	case <-n.ended:
		return nil, fmt.Errorf("%s: the server has hung up", method)
	case <-time.After(callTime):
		n.close()
		return nil, fmt.Errorf("%s: no answer within %v", method, callTime)
	}
}

func (n *session) write(v any) error {
	b, err := jsonrpc.Encode(v)
	if err != nil {
		return err
	}
	n.writing.Lock()
	defer n.writing.Unlock()
	n.conn.SetWriteDeadline(time.Now().Add(callTime))
	_, err = n.conn.Write(b)
	return err
}

// runReader reads messages until the connection ends.
func (n *session) runReader() {
	defer close(n.ended)
	defer n.close()
	from := jsonrpc.NewReader(n.conn, maxMessage)
	for {
		m, err := from.Next()
		if err == nil {
			err = n.handle(m)
		}
		if err != nil {
			n.mu.Lock()
			n.why = err
			n.mu.Unlock()
			return
		}
	}
}

// handle handles a message of the server.
func (n *session) handle(m *jsonrpc.Message) error {
	switch m.Method {
	case "":
		n.mu.Lock()
		answer := n.waiting[fmt.Sprint(m.ID)]
		n.mu.Unlock()
		if answer != nil {
			select {
			case answer <- m:
			default: // a second reply
			}
		}
	case "echo":
		return n.write(jsonrpc.Reply(m.ID, m.Params))
	case "update":
		if len(m.Params) != 2 || m.Params[0] != monitorID {
			return errors.New("the server sends an update of an unknown monitor")
		}
		u, ok := m.Params[1].(map[string]any)
		if !ok {
			return errors.New("the server sends an update without tables")
		}
		select {
		case n.updates <- u:
		default:
			return fmt.Errorf("%d updates of the server wait, want fewer", maxUpdates)
		}
	case "stolen":
		return errors.New("another process has stolen the lock")
	}
	return nil
}
