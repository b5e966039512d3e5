package underlay

import (
	"errors"
	"net/netip"

	"golang.org/x/sys/unix"
)

// openReceiver opens the UDP socket that gets other Nodes' Geneve.
func openReceiver(at netip.AddrPort) (int, error) {
	fd, err := openSocket(at, unix.SOCK_DGRAM)
	if err != nil {
		return -1, err
	}
	growBuffer(fd, unix.SO_RCVBUFFORCE, unix.SO_RCVBUF)
	return fd, nil
}

// openSender opens the raw socket for datagrams with our own UDP headers, sent
// from local with the DF bit, as Open vSwitch sends them. What is received is
// not for it: its filter is the program "return 0".
func openSender(local netip.Addr) (int, error) {
	fd, err := openSocket(netip.AddrPortFrom(local, 0), unix.SOCK_RAW)
	if err != nil {
		return -1, err
	}
	growBuffer(fd, unix.SO_SNDBUFFORCE, unix.SO_SNDBUF)
	none := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K}}
	prog := unix.SockFprog{Len: uint16(len(none)), Filter: &none[0]}
	if err := errors.Join(unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &prog), dontFragment(fd, local)); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func dontFragment(fd int, local netip.Addr) error {
	if local.Is4() {
		return unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_DO)
	}
	return unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_DO)
}

// openSocket opens and binds a non-blocking socket of protocol UDP.
func openSocket(at netip.AddrPort, kind int) (int, error) {
	family, sa := sockaddr(at)
	fd, err := unix.Socket(family, kind|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, unix.IPPROTO_UDP)
	if err != nil {
		return -1, err
	}
	if err := unix.Bind(fd, sa); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func sockaddr(at netip.AddrPort) (family int, sa unix.Sockaddr) {
	if at.Addr().Is4() {
		return unix.AF_INET, &unix.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}
	}
	return unix.AF_INET6, &unix.SockaddrInet6{Port: int(at.Port()), Addr: at.Addr().As16()}
}

// growBuffer asks for a large socket buffer, past the system's limit when the
// process may; a smaller one costs drops in bursts, nothing else.
func growBuffer(fd, force, ask int) {
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, force, socketBuffer) != nil {
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, ask, socketBuffer)
	}
}
