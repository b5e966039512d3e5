package porttest

import (
	"bytes"
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

// testCarries sends frames with undone work through the port in both
// directions: they arrive as they were, undone.
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
				sameWhole(t, name, i, across(t, way[0], way[1], f), f)
			}
		}
	}
	r.allFree(t)
}

// across sends a copy of f from one port to the other and returns what arrives.
func across(t *testing.T, from, to ports.Port, f *packet.Frame) *packet.Frame {
	t.Helper()
	c := packet.NewFrame(make([]byte, packet.LargeBuffer), nil)
	c.CopyFrom(f)
	if from.Transmit([]*packet.Frame{c}) != 1 {
		t.Fatalf("refused: %+v", from.Stats())
	}
	from.Flush()
	one := make([]*packet.Frame, 1)
	for end := time.Now().Add(patience); time.Now().Before(end); {
		if to.Receive(one) == 0 {
			time.Sleep(100 * time.Microsecond)
			continue
		}
		got := packet.NewFrame(make([]byte, packet.LargeBuffer), nil)
		got.CopyFrom(one[0])
		packet.Release(one)
		if string(got.Bytes()[:12]) == string(f.Bytes()[:12]) { // the kernel's own frames are ignored
			return got
		}
	}
	t.Fatalf("nothing arrived: %+v, %+v", from.Stats(), to.Stats())
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
