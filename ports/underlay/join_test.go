package underlay

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
	"golang.org/x/sys/unix"
)

// segments are a TCP frame's, as another Node's worker cuts it.
func segments(t *testing.T, f *packet.Frame) (all [][]byte) {
	t.Helper()
	l := packet.ParseLayers(f.Bytes())
	s, ok := packet.NewSegments(f, &l)
	if !ok {
		t.Fatal("cannot be cut")
	}
	for s.More() {
		g := packet.NewFrame(make([]byte, 2048), nil)
		s.Next(g)
		all = append(all, g.Bytes())
	}
	return all
}

// TestSegmentsAreJoined receives the segments of two large frames with a
// datagram between those of the second: two frames and a rest, in order.
func TestSegmentsAreJoined(t *testing.T) {
	ns := nstest.New(t)
	p := open(t, ns, Config{Name: "tun0", Local: local, Frames: 256, Peers: []netip.Addr{peer}})
	c := node(t, ns, peer)
	payload := make([]byte, 20_000)
	for i := range payload {
		payload[i] = byte(i * i)
	}
	o := packettest.Options{Payload: payload, TCPFlags: packet.TCPAck | packet.TCPPsh}
	first, second := packettest.Undone(packettest.TCP4(o), 1400), packettest.Undone(packettest.TCP6(o), 1400)
	other := packettest.UDP4(packettest.Options{Payload: []byte("between")})
	cut := segments(t, second)
	wire := append(segments(t, first), cut[:5]...)
	wire = append(append(wire, other), cut[5:]...)
	for _, b := range wire {
		sendTo(t, c, local, wrap(7, b))
	}
	fds := []unix.PollFd{{Fd: int32(p.FD()), Events: unix.POLLIN}}
	if _, err := unix.Poll(fds, int((5 * time.Second).Milliseconds())); err != nil {
		t.Fatal(err)
	}
	batch := make([]*packet.Frame, 64)
	if n := p.Receive(batch); n != 4 {
		t.Fatalf("%d frames received, want 4", n)
	}
	if got := batch[0]; got.Offload != first.Offload || !bytes.Equal(got.Bytes(), first.Bytes()) || got.Tunnel.ID != 7 || got.Tunnel.Src != peer {
		t.Errorf("the first is %d bytes, %+v, %+v", got.Len(), got.Offload, got.Tunnel)
	}
	if !bytes.Equal(batch[2].Bytes(), other) {
		t.Errorf("the third is %x", batch[2].Bytes())
	}
	for i, part := range [][][]byte{cut[:5], cut[5:]} {
		for j, b := range segments(t, batch[1+2*i]) {
			if !bytes.Equal(b, part[j]) {
				t.Errorf("segment %d of part %d differs", j, i)
			}
		}
	}
	if s := p.Stats(); s.RxPackets != uint64(len(wire)) {
		t.Errorf("%d packets counted, want %d, as on the wire", s.RxPackets, len(wire))
	}
	packet.Release(batch[:4])
	if p.large.Free() != maxJoined || p.pool.Free()+p.nArmed != 256 {
		t.Error("a frame did not come back to its pool")
	}
}

// TestJoinAllocatesNothing joins a batch.
func TestJoinAllocatesNothing(t *testing.T) {
	p := &Port{large: packet.NewPool(maxJoined, packet.LargeBuffer)}
	pool := packet.NewPool(64, 2048)
	all := segments(t, packettest.Undone(packettest.TCP4(packettest.Options{Payload: make([]byte, 50_000), TCPFlags: packet.TCPAck}), 1400))
	batch := make([]*packet.Frame, len(all))
	if n := testing.AllocsPerRun(50, func() {
		pool.Get(batch)
		for i, f := range batch {
			f.SetBytes(all[i])
		}
		if left := p.join(batch); left != 1 {
			t.Errorf("%d frames left of %d", left, len(batch))
		}
		packet.Release(batch[:1])
	}); n != 0 {
		t.Errorf("%v allocations a batch", n)
	}
}

// TestNoFrameToJoinInto leaves segments single.
func TestNoFrameToJoinInto(t *testing.T) {
	p := &Port{large: packet.NewPool(0, packet.LargeBuffer)}
	all := segments(t, packettest.Undone(packettest.TCP4(packettest.Options{Payload: make([]byte, 5000), TCPFlags: packet.TCPAck}), 1400))
	batch := make([]*packet.Frame, len(all))
	for i := range batch {
		batch[i] = packet.NewFrame(make([]byte, 2048), nil)
		batch[i].SetBytes(all[i])
	}
	if left := p.join(batch); left != len(all) || !bytes.Equal(batch[3].Bytes(), all[3]) {
		t.Errorf("%d frames left of %d", left, len(all))
	}
}
