package attack

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/lab"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports/afpacket"
)

// TestGSO sends an attack's frames over a veth. Each arrives whole, with the attack's
// segment size. A count and a time limit end it.
func TestGSO(t *testing.T) {
	a, b := nstest.New(t), nstest.New(t)
	nstest.AddVeth(t, a, "eth0", b, "far0")
	var port *afpacket.Port
	b.Do(t, func() {
		var err error
		if port, err = afpacket.Open(afpacket.Options{Interface: "far0"}); err != nil {
			t.Fatal(err)
		}
	})
	defer port.Close()
	waitRunning(t, a, "eth0")
	for name, g := range map[string]GSO{
		"tcp4": {Src: netip.MustParseAddr("10.0.0.1"), Dst: netip.MustParseAddr("10.0.0.2"), TCP: true, Size: 8},
		"tcp6": {Src: netip.MustParseAddr("fd00::1"), Dst: netip.MustParseAddr("fd00::2"), TCP: true, Size: 48},
		"udp4": {Src: netip.MustParseAddr("10.0.0.1"), Dst: netip.MustParseAddr("10.0.0.2"), Size: 536},
		"udp6": {Src: netip.MustParseAddr("fd00::1"), Dst: netip.MustParseAddr("fd00::2"), Size: 100, Payload: 1000},
	} {
		t.Run(name, func(t *testing.T) {
			g.Namespace, g.Interface, g.DstPort, g.Count, g.Lasts = lab.Namespace(a.Name), "eth0", 80, 3, time.Minute
			sent, err := g.Send(t.Context())
			n := g.Payload
			if n == 0 {
				n = longestGSO
			}
			each := (n + g.Size - 1) / g.Size
			if err != nil || sent != (GSOSent{Frames: 3, Segments: 3 * each}) {
				t.Fatalf("sent %+v, want 3 frames of %d segments: %v", sent, each, err)
			}
			frames := receive(t, port, 3)
			for _, f := range frames {
				if int(f.Offload.SegmentSize) != g.Size || packet.SegmentCount(f) != each {
					t.Errorf("a frame of %d segments by %d arrived, want %d by %d", packet.SegmentCount(f), f.Offload.SegmentSize, each, g.Size)
				}
			}
			packet.Release(frames)
			g.Lasts = 0
			if sent, err = g.Send(t.Context()); err != nil || sent.Frames != 0 {
				t.Errorf("without time it sent %+v: %v", sent, err)
			}
		})
	}
}

// waitRunning waits until a link carries frames. Before Linux has noticed that the other
// end is up, it drops frames, and a packet socket gets no error.
func waitRunning(t *testing.T, in *nstest.Namespace, link string) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		var flags net.Flags
		in.Do(t, func() {
			ifi, err := net.InterfaceByName(link)
			if err != nil {
				t.Fatal(err)
			}
			flags = ifi.Flags
		})
		if flags&net.FlagRunning != 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s in %s does not run: %v", link, in.Name, flags)
		}
	}
}

// receive waits for n frames.
func receive(t *testing.T, p *afpacket.Port, n int) (frames []*packet.Frame) {
	t.Helper()
	batch := make([]*packet.Frame, n)
	for end := time.Now().Add(30 * time.Second); len(frames) < n; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d of %d frames arrived; %+v", len(frames), n, p.Stats())
		}
		frames = append(frames, batch[:p.Receive(batch[:n-len(frames)])]...)
	}
	return frames
}
