package agent

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"time"

	"github.com/antrail/antrail/packet"
)

// Echo requests (RFC 792, RFC 4443) from the Node to pods and to other Nodes' gateways. Like a
// kubelet's probes, they leave by the gateway link, so request and reply cross the switch.

// echoFamily is what differs between requests of IPv4 and IPv6.
type echoFamily struct {
	network        string
	request, reply byte
}

var (
	echo4 = echoFamily{"ip4:icmp", 8, 0}
	echo6 = echoFamily{"ip6:ipv6-icmp", 128, 129}
)

// echoes numbers requests, so that a reply can be matched to its request.
var echoes atomic.Uint32

// echo sends requests until one is answered, and returns the round-trip time of that one.
func echo(ctx context.Context, to netip.Addr) (time.Duration, error) {
	f := echo4
	if to.Is6() {
		f = echo6
	}
	conn, err := net.ListenPacket(f.network, "")
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	for ctx.Err() == nil {
		took, err := f.once(conn, to)
		if err == nil || !os.IsTimeout(err) {
			return took, err
		}
	}
	return 0, fmt.Errorf("no answer")
}

// echoTimeout is how long one request waits for its answer.
const echoTimeout = 500 * time.Millisecond

// once sends a request and waits for its answer.
func (f *echoFamily) once(conn net.PacketConn, to netip.Addr) (time.Duration, error) {
	b := make([]byte, 16)
	b[0] = f.request
	binary.BigEndian.PutUint32(b[4:], uint32(os.Getpid())<<16|echoes.Add(1)&0xffff) // identifier and sequence number
	want := binary.BigEndian.Uint32(b[4:])
	if *f == echo4 { // for IPv6 the kernel fills in the checksum
		binary.BigEndian.PutUint16(b[2:], packet.Checksum(b, 0))
	}
	began := time.Now()
	if err := conn.SetDeadline(began.Add(echoTimeout)); err != nil {
		return 0, err
	}
	if _, err := conn.WriteTo(b, &net.IPAddr{IP: to.AsSlice()}); err != nil {
		return 0, err
	}
	var in [1500]byte
	for {
		n, from, err := conn.ReadFrom(in[:])
		if err != nil {
			return 0, err
		}
		ip, isIP := from.(*net.IPAddr)
		if n >= 8 && in[0] == f.reply && binary.BigEndian.Uint32(in[4:]) == want && isIP && ip.IP.Equal(to.AsSlice()) {
			return time.Since(began), nil
		}
	}
}
