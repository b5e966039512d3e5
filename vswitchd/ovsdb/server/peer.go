package server

import (
	"errors"
	"fmt"
	"net"
	"sync/atomic"

	"github.com/antrail/antrail/vswitchd/jsonrpc"
	"github.com/antrail/antrail/vswitchd/ovsdb/datum"
)

// peer is the other end of a connection, to which messages are sent.
type peer struct {
	nc  net.Conn
	out *jsonrpc.Outbox
	// stalled is set if the client was disconnected because it did not read.
	stalled atomic.Bool
}

// errStalled is the error for a client that was disconnected because it does not read.
var errStalled = errors.New("it does not read its updates")

func newPeer(nc net.Conn, outbox int) *peer {
	return &peer{nc: nc, out: jsonrpc.NewOutbox(outbox)}
}

// close ends the connection. Reads and writes under way return.
func (p *peer) close() {
	p.out.Close()
	_ = p.nc.Close()
}

// runWriter sends the messages in the outbox.
func (p *peer) runWriter() {
	if p.out.Run(p.nc) != nil {
		p.close()
	}
}

// send puts a message into the outbox. A client whose outbox is full is disconnected. A
// caller may hold a database's lock.
func (p *peer) send(v any) {
	if p.out.Put(v) {
		return
	}
	if !p.out.Closed() {
		p.stalled.Store(true)
	}
	p.close()
}

// reply answers a request.
func (p *peer) reply(id, result any, err error) {
	switch e := err.(type) {
	case nil:
		p.send(jsonrpc.Reply(id, result))
	case *datum.Error:
		p.send(jsonrpc.Failure(id, e.JSON()))
	default:
		p.send(jsonrpc.Failure(id, err.Error()))
	}
}

// key is the key of an id for a map. The id may be any JSON value.
func key(id any) string {
	b, err := jsonrpc.Encode(id)
	if err != nil {
		return fmt.Sprint(id)
	}
	return string(b)
}
