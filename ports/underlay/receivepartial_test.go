package underlay

import (
	"bytes"
	"net"
	"testing"
	"time"

	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/packet"
	pt "github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/ports/afpacket"
	"github.com/antrail/antrail/tunnel"
	"golang.org/x/sys/unix"
)

// TestPartialFromTheKernel: what another Node's kernel has put into a tunnel arrives over
// veth links with checksums and segments undone. It comes as the sender made it.
func TestPartialFromTheKernel(t *testing.T) {
	a, b, aAddr, bAddr := twoNodes(t)
	addVXLAN(t, b, bAddr, aAddr)
	p := open(t, a, Config{Kind: tunnel.KindVXLAN, Local: aAddr, Peers: peersAt(bAddr), MTU: 1450})
	payload := bytes.Repeat([]byte("0123456789abcdef"), 300)
	o := pt.Options{EthSrc: [6]byte{2, 0, 0, 0, 0, 0x99}, EthDst: [6]byte{2, 0, 0, 0, 0, 0x11}, Src: pt.Addr("10.1.0.2"), Dst: pt.Addr("10.1.0.1"), Payload: payload, TCPFlags: packet.TCPAck}
	var kernel *afpacket.Port
	b.Do(t, func() {
		var err error
		if kernel, err = afpacket.Open(afpacket.Options{Interface: "vx0"}); err != nil {
			t.Fatal(err)
		}
	})
	t.Cleanup(func() { kernel.Close() })
	long := pt.Undone(pt.TCP4(o), 1400)
	if n := kernel.Transmit([]*packet.Frame{long}); n != 1 {
		t.Fatalf("%d frames sent: %+v", n, kernel.Stats())
	}
	if got := undoneFrom(t, p, len(payload)); !bytes.Equal(got, payload) {
		t.Errorf("%d bytes of TCP arrived, want %d: %+v", len(got), len(payload), p.Stats())
	}
	for _, segment := range []int{0, 1000} {
		n := 1000 + 2*segment
		sendUDP(t, b, payload[:n], segment)
		if got := undoneFrom(t, p, n); !bytes.Equal(got, payload[:n]) {
			t.Errorf("segments of %d: %d bytes of UDP arrived, want %d: %+v", segment, len(got), n, p.Stats())
		}
	}
}

// sendUDP sends from the kernel's socket, in segments unless segment is 0.
func sendUDP(t *testing.T, ns *nstest.Namespace, payload []byte, segment int) {
	t.Helper()
	ns.Do(t, func() {
		c, err := net.DialUDP("udp", nil, &net.UDPAddr{IP: net.IPv4(10, 1, 0, 1), Port: 7000})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		raw, err := c.SyscallConn()
		if err == nil {
			err = raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_UDP, unix.UDP_SEGMENT, segment) })
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write(payload); err != nil {
			t.Fatal(err)
		}
	})
}

// undoneFrom is the payload that arrives at a port, n bytes of it if it comes within a
// minute. Each frame is whole when it has been completed or cut.
func undoneFrom(t *testing.T, p *Port, n int) (payload []byte) {
	t.Helper()
	batch := make([]*packet.Frame, 8)
	for end := time.Now().Add(time.Minute); len(payload) < n && time.Now().Before(end) && p.Stats().RxDropped+p.Stats().RxErrors == 0; {
		for _, f := range batch[:p.Receive(batch)] {
			l := packet.ParseLayers(f.Bytes())
			for _, b := range wholeFrames(t, f, &l) {
				l := packet.ParseLayers(b)
				if !l.L4Valid(b) {
					t.Errorf("the checksum of %d bytes is wrong", len(b))
				}
				at := l.L4 + packet.UDPLen
				if l.Proto == packet.ProtoTCP {
					at = l.L4 + packet.TCP(b[l.L4:]).HeaderLen()
				}
				payload = append(payload, b[at:]...)
			}
			packet.Release([]*packet.Frame{f})
		}
	}
	return payload
}

// wholeFrames are the bytes of a frame, completed or cut.
func wholeFrames(t *testing.T, f *packet.Frame, l *packet.Layers) [][]byte {
	t.Helper()
	if f.Offload.SegmentSize != 0 {
		return segments(t, f)
	}
	if !f.Offload.None() && !packet.CompleteChecksum(f, l) {
		t.Errorf("the checksum cannot be completed: %+v", f.Offload)
	}
	return [][]byte{bytes.Clone(f.Bytes())}
}
