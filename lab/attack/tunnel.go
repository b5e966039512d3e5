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

// inject sends tunnel packets to an address, as an unprivileged user of a pod or a Node.
func inject(from string, end func(*stage) netip.Addr, i injection) func(context.Context, *stage) (int, error) {
	return func(_ context.Context, s *stage) (int, error) {
		inner := s.tcp(packettest.Options{
			EthSrc: s.pod(i.as).gateway, EthDst: virtualMAC, Src: s.pod(i.as).address, Dst: s.pod(i.to).address,
			SrcPort: 40000, DstPort: dbPort, Payload: s.marker,
		})
		return s.sendInner(from, end(s), i.vni, inner)
	}
}

// tunnelEnd is a Node's address in the tunnel.
func tunnelEnd(node string) func(*stage) netip.Addr {
	return func(s *stage) netip.Addr { return s.lab.Topology.TunnelEnd(s.node(node)) }
}

// nodeGateway is the address by which pods reach their own Node.
func nodeGateway(s *stage) netip.Addr { return s.node(nodeA).Gateway.V4 }

// otherIPv6 is an address of the other Node that the tunnel does not use.
func otherIPv6(s *stage) netip.Addr { return s.node(nodeB).Address.V6.Addr() }

// sendInner sends a frame in tunnel packets to an address, as an unprivileged user in a
// namespace.
func (s *stage) sendInner(from string, end netip.Addr, vni uint32, inner []byte) (sent int, err error) {
	kind := s.lab.Topology.Tunnel
	datagram := make([]byte, tunnel.HeaderLen)
	kind.Init(datagram, vni)
	datagram = append(datagram, inner...)
	within := s.asNobody
	if kind.Port() == 0 { // GRE needs a raw socket
		within = s.lab.In
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
