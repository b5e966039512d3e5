package underlay

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/packet"
	pt "github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/tunnel"
)

// traced is a frame for a Node, with the id of a walk or 0.
func traced(dst netip.Addr, id uint64, b []byte) *packet.Frame {
	f := packet.FrameOf(b)
	f.Tunnel = packet.Tunnel{Dst: dst, ID: 7, Trace: id}
	return f
}

// TestIDsTravel sends segments of a connection of which some are watched: all
// arrive in order, those with their ids and by themselves, and are counted as
// without.
func TestIDsTravel(t *testing.T) {
	ns := nstest.New(t)
	for _, kind := range kinds {
		t.Run(kind.String(), func(t *testing.T) {
			a := open(t, ns, Config{Kind: kind, Local: local, Peers: peersAt(peer)})
			b := open(t, ns, Config{Kind: kind, Local: peer, Peers: peersAt(local)})
			_, cut := tcpSegments(t, 9)
			ids := []uint64{0, 0, 0, 5, 0, 6, 7, 0, 0}
			var batch []*packet.Frame
			size := 0
			for i, s := range cut {
				batch = append(batch, traced(peer, ids[i], s))
				size += len(s)
			}
			if n := a.Transmit(batch); n != len(cut) {
				t.Fatalf("%d of %d sent: %+v", n, len(cut), a.Stats())
			}
			if s := a.Stats(); s.TxPackets != uint64(len(cut)) || s.TxBytes != uint64(size) {
				t.Errorf("%+v, want %d bytes", s, size)
			}
			var got [][]byte
			var seen []uint64
			for len(got) < len(cut) {
				if !readable(t, b.FD()) {
					t.Fatalf("%d frames came: %+v", len(got), b.Stats())
				}
				batch := make([]*packet.Frame, 64)
				for _, f := range batch[:b.Receive(batch)] {
					whole := segmentsOf(t, f)
					if f.Tunnel.Trace != 0 && len(whole) != 1 {
						t.Errorf("%d segments have one id", len(whole))
					}
					for range whole {
						seen = append(seen, f.Tunnel.Trace)
					}
					got = append(got, whole...)
					packet.Release([]*packet.Frame{f})
				}
			}
			for i := range cut {
				want := ids[i]
				if !kind.CarriesTrace() {
					want = 0
				}
				if !bytes.Equal(got[i], cut[i]) || seen[i] != want {
					t.Errorf("segment %d is another, or came with id %d", i, seen[i])
				}
			}
		})
	}
}

// segmentsOf is the segments of a frame, or the frame.
func segmentsOf(t *testing.T, f *packet.Frame) [][]byte {
	t.Helper()
	if f.Offload.SegmentSize == 0 {
		return [][]byte{bytes.Clone(f.Bytes())}
	}
	return segments(t, f)
}

// TestIDsStayBehind sends watched frames that have no room for an id: within the
// MTU of the port, and where the way turns out to be narrower.
func TestIDsStayBehind(t *testing.T) {
	ns := nstest.New(t)
	nodes := [2]netip.Addr{local, peer}
	for name, c := range map[string]struct{ mtu, way, inner int }{
		"of the port": {1450, 65536, 1450},
		"of the way":  {2000, 1300, 1300 - tunnel.KindGeneve.Overhead(false)},
	} {
		t.Run(name, func(t *testing.T) {
			setLoopbackMTU(t, ns, 65536)
			a := open(t, ns, Config{Local: nodes[0], MTU: c.mtu, Peers: peersAt(nodes[1:]...)})
			b := open(t, ns, Config{Local: nodes[1], MTU: c.mtu, Peers: peersAt(nodes[:1]...)})
			setLoopbackMTU(t, ns, c.way)
			frame := df(pt.UDP4(payload(c.inner - packet.IPv4Len - packet.UDPLen)))
			for i, cut := range []int{0, 0, tunnel.TraceLen} {
				short := df(pt.UDP4(payload(c.inner - packet.IPv4Len - packet.UDPLen - cut)))
				if n := a.Transmit([]*packet.Frame{traced(peer, uint64(i+1), short)}); n != 1 {
					t.Fatalf("not sent: %+v", a.Stats())
				}
				f := receive(t, b, 1)[0]
				want := uint64(0)
				if cut > 0 {
					want = uint64(i + 1)
				}
				if f.Tunnel.Trace != want || f.Tunnel.ID != 7 || !bytes.Equal(f.Bytes(), short) {
					t.Errorf("%d bytes came with id %d in VNI %d, want id %d", f.Len(), f.Tunnel.Trace, f.Tunnel.ID, want)
				}
				packet.Release([]*packet.Frame{f})
			}
			if s := a.Stats(); s.TxDropped+s.TxErrors != 0 || s.TxBytes != uint64(3*len(frame)-tunnel.TraceLen) {
				t.Errorf("%+v", s)
			}
		})
	}
}
