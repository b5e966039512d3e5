package underlay

import (
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/tunnel"
)

// numSenders is how many sockets send frames, and so how many UDP source ports flows have. The
// system chooses each port in its range (ip_local_port_range).
const numSenders = 256

// openReceiver opens a socket that gets what other Nodes send by a tunnel. For other
// addresses than the Node's own it does so also before the Node has them. A socket that
// joins finds the address in use by others of this user that are shared. Where the kernel
// joins datagrams, the socket gets them joined.
func openReceiver(c *Config, at netip.Addr, joins bool) (int, error) {
	fd, err := openSocket(c.Kind, netip.AddrPortFrom(at, c.Kind.Port()), socketOptions{early: at != c.Local, shared: joins})
	if err != nil {
		return -1, err
	}
	growBuffer(fd, unix.SO_RCVBUFFORCE, unix.SO_RCVBUF)
	if c.Kind.Port() != 0 && !c.Apart {
		join(fd, true)
	}
	return fd, nil
}

// acceptUnsummed makes a UDP socket over IPv6 accept datagrams without a checksum, as Open
// vSwitch does. The programs of another Node send them (RFC 6935; ports/offload/unwrap.go says
// how damage is found). Datagrams with a wrong checksum are still dropped.
func acceptUnsummed(fd int) error {
	return unix.SetsockoptInt(fd, unix.SOL_UDP, unix.UDP_NO_CHECK6_RX, 1)
}

// join says whether a UDP socket gets datagrams that the kernel has joined. The kernel joins none
// before Linux 5.0; a raw socket does not have the option.
func join(fd int, joined bool) {
	on := 0
	if joined {
		on = 1
	}
	_ = unix.SetsockoptInt(fd, unix.SOL_UDP, unix.UDP_GRO, on)
}

// openSenders opens the sockets of all flows.
func openSenders(kind tunnel.Kind, local netip.Addr) (fds []int, err error) {
	n := numSenders
	if kind.Port() == 0 {
		n = 1
	}
	for range n {
		fd, err := openSender(kind, local, true)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("socket %d of %d: %w", len(fds)+1, n, err), ports.CloseAll(fds))
		}
		fds = append(fds, fd)
	}
	return fds, nil
}

// portsOf are the local ports of UDP sockets.
func portsOf(fds []int) ([]uint16, error) {
	var all []uint16
	for _, fd := range fds {
		at, err := boundTo(fd)
		if err != nil {
			return nil, err
		}
		all = append(all, at.Port())
	}
	return all, nil
}

// openSender opens a socket for datagrams sent from local. With df they have the DF bit, as Open
// vSwitch sends them; otherwise they are fragmented if too long for their way. The socket
// receives nothing, because its filter is the program "return 0".
func openSender(kind tunnel.Kind, local netip.Addr, df bool) (int, error) {
	fd, err := openSocket(kind, netip.AddrPortFrom(local, 0), socketOptions{})
	if err != nil {
		return -1, err
	}
	growBuffer(fd, unix.SO_SNDBUFFORCE, unix.SO_SNDBUF)
	none := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K}}
	prog := unix.SockFprog{Len: uint16(len(none)), Filter: &none[0]}
	if err := errors.Join(unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &prog), discoverMTU(fd, local, df)); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func discoverMTU(fd int, local netip.Addr, df bool) error {
	how := unix.IP_PMTUDISC_DONT // IPv6 has the same numbers
	if df {
		how = unix.IP_PMTUDISC_DO
	}
	if local.Is4() {
		return unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, how)
	}
	return unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, how)
}

// socketOptions says how a socket is bound.
type socketOptions struct {
	early  bool // also to an address that the Node does not have
	shared bool // also if shared sockets of the same user are bound there
}

// openSocket opens and binds a non-blocking socket, of UDP or a raw one of GRE.
func openSocket(kind tunnel.Kind, at netip.AddrPort, o socketOptions) (int, error) {
	family, sa := sockaddr(at)
	how := unix.SOCK_DGRAM
	if kind.Port() == 0 {
		how = unix.SOCK_RAW
	}
	fd, err := unix.Socket(family, how|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, int(kind.Proto()))
	if err != nil {
		return -1, err
	}
	if o.early {
		err = bindEarly(fd, family)
	}
	if err == nil && o.shared {
		err = share(fd)
	}
	if err == nil {
		err = unix.Bind(fd, sa)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// bindEarly allows binding a socket to an address that the Node does not have. A raw IPv6 socket
// has no IPv4 option.
func bindEarly(fd, family int) error {
	if family == unix.AF_INET {
		return unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_FREEBIND, 1)
	}
	return unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_FREEBIND, 1)
}

func sockaddr(at netip.AddrPort) (family int, sa unix.Sockaddr) {
	if at.Addr().Is4() {
		return unix.AF_INET, &unix.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}
	}
	return unix.AF_INET6, &unix.SockaddrInet6{Port: int(at.Port()), Addr: at.Addr().As16()}
}

// growBuffer requests a large socket buffer, beyond the system's limit if the process may. A
// smaller buffer only causes drops in bursts.
func growBuffer(fd, force, ask int) {
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, force, socketBuffer) != nil {
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, ask, socketBuffer)
	}
}
