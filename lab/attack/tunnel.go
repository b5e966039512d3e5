package attack

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/tunnel"
	"golang.org/x/sys/unix"
)

// Tunnel packets that a pod sends itself. A Node that takes one for another
// Node's lets the inner frame in past every check that the sender's Node does.

// virtualMAC is the destination of frames in a tunnel.
var virtualMAC = [6]byte{0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff}

// injections is how many a row sends.
const injections = 20

// inject sends tunnel packets to a Node. Inside is a SYN as from one pod to the
// database of another, which a policy allows.
func inject(node, as, to string) func(context.Context, *stage) (int, error) {
	return func(_ context.Context, s *stage) (int, error) {
		return s.inject(s.lab.Topology.TunnelEnd(s.node(node)), as, to)
	}
}

// injectGateway sends them to the address by which pods know their own Node.
func injectGateway(_ context.Context, s *stage) (int, error) {
	return s.inject(s.node(nodeA).Gateway.V4, "web-b", "db-a")
}

// injectIPv6 sends them to an address that the tunnel does not use.
func injectIPv6(_ context.Context, s *stage) (int, error) {
	return s.inject(s.node(nodeB).Address.V6.Addr(), "web-a", "db-b")
}

// inject sends tunnel packets to an address, with an inner frame as from a pod.
func (s *stage) inject(end netip.Addr, as, to string) (sent int, err error) {
	inner := s.tcp(packettest.Options{
		EthSrc: s.pod(as).gateway, EthDst: virtualMAC, Src: s.pod(as).address, Dst: s.pod(to).address,
		SrcPort: 40000, DstPort: dbPort, Payload: s.marker,
	})
	kind := s.lab.Topology.Tunnel
	datagram := make([]byte, tunnel.HeaderLen)
	kind.Init(datagram, 0)
	datagram = append(datagram, inner...)
	within := s.asNobody
	if kind.Port() == 0 { // GRE takes a raw socket
		within = s.in
	}
	err = within(attacker, func() error {
		for range injections {
			if err := sendDatagram(end, kind.Proto(), kind.Port(), datagram); err != nil {
				return err
			}
			sent++
		}
		return nil
	})
	return sent, err
}

// sendDatagram sends from the calling thread's namespace: UDP by a plain socket,
// any other protocol by a raw one.
func sendDatagram(to netip.Addr, proto uint8, port uint16, b []byte) error {
	domain, kind, end := unix.AF_INET, unix.SOCK_DGRAM, socketAddress(to, port)
	if to.Is6() {
		domain = unix.AF_INET6
	}
	if proto != packet.ProtoUDP {
		kind = unix.SOCK_RAW
	}
	fd, err := unix.Socket(domain, kind|unix.SOCK_CLOEXEC, int(proto))
	if err != nil {
		return fmt.Errorf("socket: %w", err)
	}
	defer unix.Close(fd)
	if err := unix.Sendto(fd, b, 0, end); err != nil && err != unix.EPERM && err != unix.ECONNREFUSED {
		return fmt.Errorf("send to %s: %w", to, err)
	}
	return nil
}

// socketAddress is an address as the kernel takes it.
func socketAddress(a netip.Addr, port uint16) unix.Sockaddr {
	if a.Is4() {
		return &unix.SockaddrInet4{Addr: a.As4(), Port: int(port)}
	}
	return &unix.SockaddrInet6{Addr: a.As16(), Port: int(port)}
}
