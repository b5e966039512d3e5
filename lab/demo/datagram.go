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

// echoPort is the UDP port on which client pods and the outside host send back
// what they get.
const echoPort = 5001

// longDatagram is the bytes of payload in such a datagram: six fragments at an
// MTU of 1450.
const longDatagram = 8000

// listenEcho starts an echo server of both families.
func (w *world) listenEcho(name string) error {
	return w.in(name, func() error {
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

// datagrams is a check that long datagrams come back from echo servers. pairs
// is from, to, from, to, …
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

// echo sends datagrams of random bytes, of the given sizes, by one connection;
// each must come back. Only the first may have to be sent again: nobody may know
// the neighbour yet, and then a kernel keeps less than so many fragments for it.
func (w *world) echo(ctx context.Context, from, to string, sizes ...int) error {
	c, err := w.dialUDP(ctx, from, to)
	if err != nil {
		return fmt.Errorf("%s to %s: %w", from, to, err)
	}
	defer c.Close()
	for i, n := range sizes {
		err := exchange(c, n)
		if i == 0 && isTimeout(err) {
			err = exchange(c, n)
		}
		if err != nil {
			return fmt.Errorf("%s to %s, %d bytes, datagram %d of %d: %w", from, to, n, i+1, len(sizes), err)
		}
	}
	return nil
}

func (w *world) dialUDP(ctx context.Context, from, to string) (c net.Conn, err error) {
	err = w.in(from, func() error {
		c, err = (&net.Dialer{}).DialContext(ctx, "udp", w.resolve(to))
		return err
	})
	return c, err
}

// exchange sends n random bytes and wants them back.
func exchange(c net.Conn, n int) error {
	sent, got := make([]byte, n), make([]byte, n+1)
	for i := range sent {
		sent[i] = byte(rand.Uint32())
	}
	if _, err := c.Write(sent); err != nil {
		return err
	}
	c.SetReadDeadline(time.Now().Add(patience))
	have, err := c.Read(got)
	if err != nil {
		return err
	}
	if !bytes.Equal(got[:have], sent) {
		return fmt.Errorf("%d other bytes came back of %d", have, n)
	}
	return nil
}
