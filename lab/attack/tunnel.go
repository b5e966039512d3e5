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

// Tunnel packets from a pod itself. If a Node accepts one as another Node's, the inner
// frame passes all checks of the sender's Node.

// virtualMAC is the destination of frames in a tunnel.
var virtualMAC = [6]byte{0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff}

// injections is how many tunnel packets a row sends.
const injections = 20

// injection is a tunnel packet. Inside is a SYN from one pod to another's database, which a
// policy allows.
type injection struct {
	as, to string // pods
	vni    uint32 // the tunnel's virtual network; 0 is ours
}

// inject sends tunnel packets from the attacker to a Node.
func inject(node, as, to string) func(context.Context, *stage) (int, error) {
	return func(_ context.Context, s *stage) (int, error) {
		return s.inject(attacker, s.lab.Topology.TunnelEnd(s.node(node)), injection{as: as, to: to})
	}
}

// injectGateway sends them to the gateway's address, by which pods reach their own Node.
func injectGateway(_ context.Context, s *stage) (int, error) {
	return s.inject(attacker, s.node(nodeA).Gateway.V4, injection{as: "web-b", to: "db-a"})
}

// injectIPv6 sends them to an address that the tunnel does not use.
func injectIPv6(_ context.Context, s *stage) (int, error) {
	return s.inject(attacker, s.node(nodeB).Address.V6.Addr(), injection{as: "web-a", to: "db-b"})
}

// injectForeign sends as a user of the other Node, with a pod of this Node as inner source.
func injectForeign(_ context.Context, s *stage) (int, error) {
	return s.inject(nodeB, s.lab.Topology.TunnelEnd(s.node(nodeA)), injection{as: "web-a", to: "db-a"})
}

// injectNetwork sends as a user of the other Node, with another VNI.
func injectNetwork(_ context.Context, s *stage) (int, error) {
	return s.inject(nodeB, s.lab.Topology.TunnelEnd(s.node(nodeA)), injection{as: "web-b", to: "db-a", vni: 5})
}

// inject sends tunnel packets to an address from a namespace.
func (s *stage) inject(from string, end netip.Addr, i injection) (sent int, err error) {
	inner := s.tcp(packettest.Options{
		EthSrc: s.pod(i.as).gateway, EthDst: virtualMAC, Src: s.pod(i.as).address, Dst: s.pod(i.to).address,
		SrcPort: 40000, DstPort: dbPort, Payload: s.marker,
	})
	return s.sendInner(from, end, i.vni, inner)
}

// sendInner sends a frame in tunnel packets to an address, as an unprivileged user in a
// namespace.
func (s *stage) sendInner(from string, end netip.Addr, vni uint32, inner []byte) (sent int, err error) {
	kind := s.lab.Topology.Tunnel
	datagram := make([]byte, tunnel.HeaderLen)
	kind.Init(datagram, vni)
	datagram = append(datagram, inner...)
	within := s.asNobody
	if kind.Port() == 0 { // GRE needs a raw socket
		within = s.in
	}
	err = within(from, func() error {
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

// sendDatagram sends from the calling thread's namespace. UDP goes by a plain socket,
// without a checksum over IPv4. Other protocols go by a raw one.
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
	if proto == packet.ProtoUDP && to.Is4() {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_NO_CHECK, 1); err != nil {
			return fmt.Errorf("SO_NO_CHECK: %w", err)
		}
	}
	if err := unix.Sendto(fd, b, 0, end); err != nil && err != unix.EPERM && err != unix.ECONNREFUSED {
		return fmt.Errorf("send to %s: %w", to, err)
	}
	return nil
}

// socketAddress is an address for the kernel.
func socketAddress(a netip.Addr, port uint16) unix.Sockaddr {
	if a.Is4() {
		return &unix.SockaddrInet4{Addr: a.As4(), Port: int(port)}
	}
	return &unix.SockaddrInet6{Addr: a.As16(), Port: int(port)}
}
