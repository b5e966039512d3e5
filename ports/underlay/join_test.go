package underlay

import (
	"bytes"
	"testing"
	"time"

	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
	"golang.org/x/sys/unix"
)

// segments are a TCP frame's, as another Node's worker cuts it.
func segments(t testing.TB, f *packet.Frame) (all [][]byte) {
	t.Helper()
	for _, g := range packettest.Cut(f) {
		all = append(all, g.Bytes())
	}
	return all
}

// TestSegmentsAreJoined receives the segments of two large frames with a
// datagram between those of the second: two frames and a rest, in order.
func TestSegmentsAreJoined(t *testing.T) {
	ns := nstest.New(t)
	p := open(t, ns, Config{Name: "tun0", Local: local, Frames: 256, MTU: 1500, Peers: peersAt(peer)})
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
	if _, err := unix.Poll(fds, int(time.Minute.Milliseconds())); err != nil {
		t.Fatal(err)
	}
	batch := make([]*packet.Frame, 64)
	if n := p.Receive(batch); n != 4 {
		t.Fatalf("%d frames received, want 4: %d messages of %d; %+v", n, p.in.got, len(wire), p.Stats())
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
	p.Close()
	if p.large.Free() != maxJoined || p.pool.Free() != 256 {
		t.Error("a frame did not come back to its pool")
	}
}
