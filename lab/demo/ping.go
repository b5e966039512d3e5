package demo

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"
)

// echoes is how many echo requests a ping sends.
const echoes = 3

// ping is a check that echo requests are answered. pairs is from, to, from,
// to, …
func ping(pairs ...string) func(context.Context, *world) (string, error) {
	return func(ctx context.Context, w *world) (string, error) {
		var seen []string
		for i := 0; i < len(pairs); i += 2 {
			rtt, err := w.ping(pairs[i], pairs[i+1], patience)
			if err != nil {
				return "", err
			}
			seen = append(seen, fmt.Sprintf("%s to %s %.2f ms", pairs[i], pairs[i+1], rtt.Seconds()*1000))
		}
		return strings.Join(seen, ", "), nil
	}
}

// errNoReply says that an echo request was not answered in time.
var errNoReply = errors.New("no echo reply")

// ping sends echo requests (RFC 792) one after the other and returns the
// shortest round trip. All must be answered, each within the timeout.
func (w *world) ping(from, to string, timeout time.Duration) (time.Duration, error) {
	var c *net.IPConn
	err := w.in(from, func() (err error) {
		c, err = net.ListenIP("ip4:icmp", nil)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("raw socket in %s: %w", from, err)
	}
	defer c.Close()
	best := time.Hour
	for seq := range uint16(echoes) {
		rtt, err := echo(c, w.addresses[to], seq, timeout)
		if err != nil {
			return 0, fmt.Errorf("%s to %s, request %d of %d: %w", from, to, seq+1, echoes, err)
		}
		best = min(best, rtt)
	}
	return best, nil
}

// echo sends one request and waits for its reply.
func echo(c *net.IPConn, to netip.Addr, seq uint16, timeout time.Duration) (time.Duration, error) {
	id := uint16(os.Getpid())
	began := time.Now()
	if _, err := c.WriteTo(echoRequest(id, seq), &net.IPAddr{IP: to.AsSlice()}); err != nil {
		return 0, err
	}
	c.SetReadDeadline(began.Add(timeout))
	buf := make([]byte, 1500)
	for {
		n, who, err := c.ReadFrom(buf)
		switch {
		case isTimeout(err):
			return 0, errNoReply
		case err != nil:
			return 0, err
		case who.String() == to.String() && isReply(buf[:n], id, seq):
			return time.Since(began), nil
		}
	}
}

func isReply(b []byte, id, seq uint16) bool {
	const echoReply = 0
	return len(b) >= 8 && b[0] == echoReply &&
		binary.BigEndian.Uint16(b[4:]) == id && binary.BigEndian.Uint16(b[6:]) == seq
}

// echoRequest is an ICMP message: type, code, checksum, identifier, sequence
// number and 56 bytes of data.
func echoRequest(id, seq uint16) []byte {
	b := make([]byte, 64)
	b[0] = 8
	binary.BigEndian.PutUint16(b[4:], id)
	binary.BigEndian.PutUint16(b[6:], seq)
	var sum uint32
	for i := 0; i < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	binary.BigEndian.PutUint16(b[2:], ^uint16(sum+sum>>16))
	return b
}
