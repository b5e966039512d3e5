package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"time"
)

// Datagrams longer than a pod's MTU: the pods' kernels cut them into fragments.

// echoPort is the UDP port of the echo servers in client pods and the outside host.
const echoPort = 5001

// longDatagram is the payload of a long datagram, in bytes: six fragments at an MTU of
// 1450.
const longDatagram = 8000

// listenEcho starts an echo server of both families.
func (w *world) listenEcho(name string) error {
	return w.lab.In(name, func() error {
		c, err := net.ListenPacket("udp", fmt.Sprintf(":%d", echoPort))
		if err != nil {
			return fmt.Errorf("echo server in %s: %w", name, err)
		}
		w.closers = append(w.closers, c)
		go runEcho(c)
		return nil
	})
}

// runEcho answers until the socket is closed.
func runEcho(c net.PacketConn) {
	b := make([]byte, 1<<16)
	for {
		n, who, err := c.ReadFrom(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			c.WriteTo(b[:n], who)
		}
	}
}

// datagrams checks that long datagrams come back from echo servers. pairs is from, to,
// from, to, …
func datagrams(pairs ...string) func(context.Context, *world) (string, error) {
	return func(ctx context.Context, w *world) (string, error) {
		var seen []string
		for i := 0; i < len(pairs); i += 2 {
			if err := w.echo(ctx, pairs[i], pairs[i+1], longDatagram, longDatagram); err != nil {
				return "", err
			}
			seen = append(seen, fmt.Sprintf("%s to %s", pairs[i], pairs[i+1]))
		}
		return fmt.Sprintf("%d bytes and back: %s", longDatagram, strings.Join(seen, ", ")), nil
	}
}

// echo sends datagrams of random bytes, of the given sizes, on one connection. Each must
// come back. Only the first may be sent again: while the neighbour is unknown, a kernel
// keeps fewer fragments than it has.
func (w *world) echo(ctx context.Context, from, to string, sizes ...int) error {
	c, err := w.dialUDP(ctx, from, to)
	if err != nil {
		return fmt.Errorf("%s to %s: %w", from, to, err)
	}
	defer c.Close()
	e := echoConn{Conn: c}
	for i, n := range sizes {
		tries, wait := 1, waitAtMost
		if i == 0 {
			tries, wait = int(2*waitAtMost/resendAfter), resendAfter
		}
		if err := e.exchange(n, tries, wait); err != nil {
			return fmt.Errorf("%s to %s, %d bytes, datagram %d of %d: %w", from, to, n, i+1, len(sizes), err)
		}
	}
	return nil
}

// resendAfter is the wait before the first datagram is sent again. Neighbour discovery
// takes less.
const resendAfter = time.Second

func (w *world) dialUDP(ctx context.Context, from, to string) (c net.Conn, err error) {
	err = w.lab.In(from, func() error {
		c, err = (&net.Dialer{}).DialContext(ctx, "udp", w.resolve(to))
		return err
	})
	return c, err
}

// echoConn is a connection to an echo server. A datagram that was sent several times may
// come back several times, also while the next one is awaited.
type echoConn struct {
	net.Conn
	before []byte // the previous datagram
}

// exchange sends n random bytes and expects them back within wait. After that it sends them
// again, tries times in all.
func (e *echoConn) exchange(n, tries int, wait time.Duration) (err error) {
	sent := make([]byte, n)
	for i := range sent {
		sent[i] = byte(rand.Uint32())
	}
	defer func() { e.before = sent }()
	for range tries {
		if _, err = e.Write(sent); err != nil {
			return err
		}
		e.SetReadDeadline(time.Now().Add(wait))
		if err = e.answer(sent); !isTimeout(err) {
			return err
		}
	}
	return err
}

// answer waits for the sent bytes, and skips copies of the previous datagram.
func (e *echoConn) answer(sent []byte) error {
	got := make([]byte, max(len(sent), len(e.before))+1)
	for {
		have, err := e.Read(got)
		switch {
		case err != nil:
			return err
		case bytes.Equal(got[:have], sent):
			return nil
		case e.before == nil || !bytes.Equal(got[:have], e.before):
			return fmt.Errorf("%d other bytes came back, expected the %d sent", have, len(sent))
		}
	}
}
