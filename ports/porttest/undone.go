package porttest

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/ports"
)

// undone is one frame of each kind of work that a sender can leave undone.
func undone() []*packet.Frame {
	small := packettest.Options{Payload: []byte("partial"), TCPFlags: packet.TCPAck}
	large := packettest.Options{
		Payload: make([]byte, 20_000), TCPFlags: packet.TCPAck | packet.TCPPsh,
		TCPOptions: []byte{1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2},
	}
	for i := range large.Payload {
		large.Payload[i] = byte(i * i)
	}
	reduced, largest := large, large
	reduced.TCPFlags |= packet.TCPCwr
	largest.Payload = make([]byte, 65535-14-20-32) // a veth cuts what is longer with its Ethernet header
	return []*packet.Frame{
		packettest.Undone(packettest.TCP4(small), 0),
		packettest.Undone(packettest.TCP6(small), 0),
		packettest.Undone(packettest.UDP4(small), 0),
		packettest.Undone(packettest.UDP6(small), 0),
		packettest.Undone(packettest.TCP4(large), 1400),
		packettest.Undone(packettest.TCP6(large), 1400),
		packettest.Undone(packettest.TCP4(reduced), 1400),
		packettest.Undone(packettest.TCP4(largest), 1448),
		packettest.Undone(packettest.UDP4(large), 1200),
		packettest.Undone(packettest.UDP6(large), 1200),
	}
}

// testCarries sends frames with undone work through the port in both directions. They must arrive
// undone. From a port that does the work, exactly the segments of software must arrive.
func testCarries(t *testing.T, r *Rig) {
	carries := r.Port.Info().Carries
	if carries != 0 {
		if r.Whole == nil {
			t.Fatal("the rig has no other side for frames with undone work")
		}
		far := r.Whole()
		for i, f := range undone() {
			if !carries.All(f) {
				continue
			}
			for name, way := range map[string][2]ports.Port{"out": {r.Port, far}, "in": {far, r.Port}} {
				send(t, way[0], f)
				if r.Does {
					sameSegments(t, fmt.Sprintf("%s, frame %d", name, i), way[1], f)
				} else {
					sameWhole(t, name, i, next(t, way[1], f), f)
				}
			}
		}
	}
	r.allFree(t)
}

// sameSegments receives as many segments as f has. They must equal f's, byte by byte.
func sameSegments(t *testing.T, name string, from ports.Port, f *packet.Frame) {
	t.Helper()
	want := segments(t, f)
	var got [][]byte
	for len(got) < len(want) {
		got = append(got, segments(t, next(t, from, f))...)
	}
	if len(got) != len(want) {
		t.Fatalf("%s: %d segments arrive of %d", name, len(got), len(want))
	}
	for i := range want {
		if !bytes.Equal(got[i], want[i]) {
			t.Fatalf("%s: segment %d of %d is\n%x, want\n%x", name, i, len(want), got[i][:min(90, len(got[i]))], want[i][:min(90, len(want[i]))])
		}
	}
}

// segments are the frames that software makes of a frame, with all undone work done.
func segments(t *testing.T, f *packet.Frame) (all [][]byte) {
	t.Helper()
	c := packet.NewFrame(make([]byte, packet.LargeBuffer), nil)
	c.CopyFrom(f)
	l := packet.ParseLayers(c.Bytes())
	if c.Offload.SegmentSize == 0 {
		if !packet.CompleteChecksum(c, &l) {
			t.Fatal("no checksum can be filled in")
		}
		return [][]byte{c.Bytes()}
	}
	s, ok := packet.NewSegments(c, &l)
	if !ok {
		t.Fatal("cannot be cut")
	}
	for s.More() {
		g := packet.NewFrame(make([]byte, packet.LargeBuffer), nil)
		s.Next(g)
		all = append(all, g.Bytes())
	}
	return all
}

// send sends a copy of f.
func send(t *testing.T, from ports.Port, f *packet.Frame) {
	t.Helper()
	c := packet.NewFrame(make([]byte, packet.LargeBuffer), nil)
	c.CopyFrom(f)
	if from.Transmit([]*packet.Frame{c}) != 1 {
		t.Fatalf("refused: %+v", from.Stats())
	}
	from.Flush()
}

// next is a copy of the next frame that arrives with f's Ethernet addresses: the
// kernel's own are ignored.
func next(t *testing.T, to ports.Port, f *packet.Frame) *packet.Frame {
	t.Helper()
	one := make([]*packet.Frame, 1)
	for end := time.Now().Add(waitAtMost); time.Now().Before(end); {
		if to.Receive(one) == 0 {
			time.Sleep(100 * time.Microsecond)
			continue
		}
		got := packet.NewFrame(make([]byte, packet.LargeBuffer), nil)
		got.CopyFrom(one[0])
		packet.Release(one)
		if string(got.Bytes()[:12]) == string(f.Bytes()[:12]) {
			return got
		}
	}
	t.Fatalf("nothing arrived: %+v", to.Stats())
	return nil
}

func sameWhole(t *testing.T, way string, i int, got, want *packet.Frame) {
	t.Helper()
	if got.Offload != want.Offload {
		t.Errorf("%s, frame %d: undone is %+v, want %+v", way, i, got.Offload, want.Offload)
	}
	if !bytes.Equal(got.Bytes(), want.Bytes()) {
		t.Errorf("%s, frame %d: %d bytes, want %d, or they differ", way, i, got.Len(), want.Len())
	}
}
