package pods

import (
	"cmp"
	"context"
	"net"
	"time"
)

// Connections between the two pods of a pair.

// listen listens in the server's pod.
func (p *pair) listen() (l net.Listener, err error) {
	err = p.server(func() (err error) { l, err = net.Listen("tcp4", cmp.Or(p.listens, p.address)); return err })
	return l, err
}

// dial connects from the client's pod.
func (p *pair) dial(ctx context.Context) (c net.Conn, err error) {
	err = p.client(func() (err error) {
		c, err = (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp4", p.address)
		return err
	})
	return c, err
}

// connect makes n connections from the client to the server. With an error, list is those that were made.
func (p *pair) connect(ctx context.Context, n int) (list []*connection, err error) {
	l, err := p.listen()
	if err != nil {
		return nil, err
	}
	defer l.Close()
	for range n {
		c, err := p.dial(ctx)
		if err != nil {
			return list, err
		}
		list = append(list, &connection{client: c.(*net.TCPConn)})
		s, err := l.Accept()
		if err != nil {
			return list, err
		}
		list[len(list)-1].server = s.(*net.TCPConn)
	}
	return list, nil
}

// connection is both ends of a TCP connection.
type connection struct{ client, server *net.TCPConn }

// close closes both ends.
func (c *connection) close() {
	c.client.Close()
	if c.server != nil {
		c.server.Close()
	}
}
