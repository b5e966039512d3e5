package afpacket

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// openSocket opens a packet socket on the interface with this index. The socket gets no frame
// before all options are set, because its protocol is 0 until it is bound. If filter is not nil,
// it decides which frames the socket gets.
//
// PACKET_QDISC_BYPASS stays off, for two reasons:
//
//   - With it the kernel drops frames that it would have to segment or checksum, if the
//     interface's own offload is off.
//   - It bypasses a Pod's bandwidth limit, which is a queueing discipline.
func openSocket(index, buffer int, filter *ebpf.Program) (int, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, fmt.Errorf("packet socket: %w", err)
	}
	for _, o := range []struct {
		name                 string
		level, option, value int
	}{
		{"virtio-net header", unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1},
		{"VLAN tags", unix.SOL_PACKET, unix.PACKET_AUXDATA, 1},
		{"no frames of our own", unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1},
		{"receive buffer", unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, buffer},
		{"send buffer", unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, buffer},
	} {
		if err := unix.SetsockoptInt(fd, o.level, o.option, o.value); err != nil {
			return -1, errors.Join(fmt.Errorf("packet socket: %s: %w", o.name, err), unix.Close(fd))
		}
	}
	if filter != nil {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ATTACH_BPF, filter.FD()); err != nil {
			return -1, errors.Join(fmt.Errorf("packet socket: filter: %w", err), unix.Close(fd))
		}
	}
	if err := listen(fd, index); err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

// listen binds the socket to all frames that the interface receives, for any address.
func listen(fd, index int) error {
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: index, Protocol: networkOrder(unix.ETH_P_ALL)}); err != nil {
		return fmt.Errorf("packet socket: bind: %w", err)
	}
	all := unix.PacketMreq{Ifindex: int32(index), Type: unix.PACKET_MR_PROMISC}
	if err := unix.SetsockoptPacketMreq(fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, &all); err != nil {
		return fmt.Errorf("packet socket: promiscuous: %w", err)
	}
	return nil
}

func networkOrder(v uint16) uint16 {
	var b [2]byte
	binary.BigEndian.PutUint16(b[:], v)
	return binary.NativeEndian.Uint16(b[:])
}
