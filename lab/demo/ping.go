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

	"github.com/antrail/antrail/lab"
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

// echoes of the two families (RFC 792, RFC 4443): where a raw socket finds them,
// and their types.
var (
	echo4 = echoKind{"ip4:icmp", 8, 0}
	echo6 = echoKind{"ip6:ipv6-icmp", 128, 129}
)

type echoKind struct {
	network        string
	request, reply byte
}

// ping sends echo requests one after the other and returns the shortest round
// trip. All must be answered, each within the timeout.
func (w *world) ping(from, to string, timeout time.Duration) (time.Duration, error) {
	kind := of(w, lab.Dual[echoKind]{V4: echo4, V6: echo6})
	p := pinger{kind: kind, to: w.addresses[to], id: uint16(os.Getpid())}
	err := w.in(from, func() (err error) {
		p.IPConn, err = net.ListenIP(kind.network, nil)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("raw socket in %s: %w", from, err)
	}
	defer p.Close()
	best := time.Hour
	for seq := range uint16(echoes) {
		rtt, err := p.echo(seq, timeout)
		if err != nil {
			return 0, fmt.Errorf("%s to %s, request %d of %d: %w", from, to, seq+1, echoes, err)
		}
		best = min(best, rtt)
	}
	return best, nil
}

// pinger sends echo requests to one address.
type pinger struct {
	*net.IPConn
	kind echoKind
	to   netip.Addr
	id   uint16
}

// echo sends one request and waits for its reply.
func (p *pinger) echo(seq uint16, timeout time.Duration) (time.Duration, error) {
	began := time.Now()
	if _, err := p.WriteTo(p.request(seq), &net.IPAddr{IP: p.to.AsSlice()}); err != nil {
		return 0, err
	}
	p.SetReadDeadline(began.Add(timeout))
	buf := make([]byte, 1500)
	for {
		n, who, err := p.ReadFrom(buf)
		switch {
		case isTimeout(err):
			return 0, errNoReply
		case err != nil:
			return 0, err
		case who.String() == p.to.String() && p.isReply(buf[:n], seq):
			return time.Since(began), nil
		}
	}
}

func (p *pinger) isReply(b []byte, seq uint16) bool {
	return len(b) >= 8 && b[0] == p.kind.reply &&
		binary.BigEndian.Uint16(b[4:]) == p.id && binary.BigEndian.Uint16(b[6:]) == seq
}

// request is an ICMP message: type, code, checksum, identifier, sequence number
// and 56 bytes of data. The checksum of ICMPv6, which covers addresses too, is the
// kernel's to fill in (RFC 3542, section 3.1).
func (p *pinger) request(seq uint16) []byte {
	b := make([]byte, 64)
	b[0] = p.kind.request
	binary.BigEndian.PutUint16(b[4:], p.id)
	binary.BigEndian.PutUint16(b[6:], seq)
	var sum uint32
	for i := 0; i < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	binary.BigEndian.PutUint16(b[2:], ^uint16(sum+sum>>16))
	return b
}
