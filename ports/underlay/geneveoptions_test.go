package underlay

import (
	"bytes"
	"slices"
	"testing"

	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/packet"
	pt "github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/tunnel"
)

// Options of Geneve: one of 4 bytes, one of none that is critical, and both.
const (
	plainOption    packet.TunnelOptions = "\x01\x02\x01\x01\xde\xad\xbe\xef"
	criticalOption packet.TunnelOptions = "\x01\x02\x80\x00"
)

// withOptions is a frame for the peer with options.
func withOptions(o packet.TunnelOptions, b []byte) *packet.Frame {
	f := traced(peer, 0, b)
	f.Tunnel.Options = o
	return f
}

// TestOptionsTravel sends segments of a connection of which some have options, and a frame that is to be
// cut. All arrive in order, those with their options, and are counted as without.
func TestOptionsTravel(t *testing.T) {
	ns := nstest.New(t)
	for _, kind := range kinds {
		t.Run(kind.String(), func(t *testing.T) {
			a := open(t, ns, Config{Kind: kind, Local: local, Peers: peersAt(peer), Options: true})
			b := open(t, ns, Config{Kind: kind, Local: peer, Peers: peersAt(local), Options: true})
			whole, cut := tcpSegments(t, 9)
			of := []packet.TunnelOptions{"", plainOption, plainOption, criticalOption, plainOption + criticalOption, "", "", plainOption, criticalOption}
			var batch []*packet.Frame
			size := 0
			for i, s := range cut {
				batch = append(batch, withOptions(of[i], s))
				size += 2 * len(s)
			}
			whole.Tunnel = packet.Tunnel{Dst: peer, ID: 7, Options: plainOption}
			want := append(slices.Clone(of), slices.Repeat([]packet.TunnelOptions{plainOption}, len(cut))...)
			if kind != tunnel.KindGeneve {
				clear(want)
			}
			if n := a.Transmit(append(batch, whole)); n != len(cut)+1 {
				t.Fatalf("%d sent: %+v", n, a.Stats())
			}
			if s := a.Stats(); s.TxPackets != uint64(2*len(cut)) || s.TxBytes != uint64(size) {
				t.Errorf("%+v, want %d bytes", s, size)
			}
			var got [][]byte
			var options []packet.TunnelOptions
			for len(got) < 2*len(cut) {
				if !readable(t, b.FD()) {
					t.Fatalf("%d frames came: %+v", len(got), b.Stats())
				}
				batch := make([]*packet.Frame, 64)
				for _, f := range batch[:b.Receive(batch)] {
					for _, s := range segmentsOf(t, f) {
						got, options = append(got, s), append(options, f.Tunnel.Options)
					}
					packet.Release([]*packet.Frame{f})
				}
			}
			for i := range got {
				if !bytes.Equal(got[i], cut[i%len(cut)]) || options[i] != want[i] {
					t.Errorf("segment %d is another, or came with options %x, want %x", i, options[i], want[i])
				}
			}
		})
	}
}

// TestOptionsStayTogether: a frame whose options do not fit on its way is not sent without them.
// Longs reports it with the length that it has without the tunnel.
func TestOptionsStayTogether(t *testing.T) {
	ns := nstest.New(t)
	setLoopbackMTU(t, ns, 1300)
	t.Cleanup(func() { setLoopbackMTU(t, ns, 65536) })
	a := open(t, ns, Config{Local: local, MTU: 2000, Peers: peersAt(peer), Options: true})
	b := open(t, ns, Config{Local: peer, MTU: 2000, Peers: peersAt(local), Options: true})
	frame := df(pt.UDP4(payload(1300 - tunnel.KindGeneve.Overhead(false) - packet.IPv4Len - packet.UDPLen)))
	if n := a.Transmit([]*packet.Frame{withOptions(plainOption, frame), withOptions("", frame)}); n != 1 {
		t.Fatalf("%d sent: %+v", n, a.Stats())
	}
	if f := receive(t, b, 1)[0]; f.Tunnel.Options != "" {
		t.Errorf("came with options %x", f.Tunnel.Options)
	}
	if long := <-a.Longs(); !bytes.Equal(long.Frame, frame) {
		t.Errorf("told of %d bytes, want %d", len(long.Frame), len(frame))
	}
}

// TestOptionsOfOthers: a port that keeps no options drops a packet with a critical one, and takes others
// without theirs.
func TestOptionsOfOthers(t *testing.T) {
	ns := nstest.New(t)
	a := open(t, ns, Config{Local: local, Peers: peersAt(peer), Options: true})
	b := open(t, ns, Config{Local: peer, Peers: peersAt(local)})
	frame := pt.UDP4(pt.Options{})
	if n := a.Transmit([]*packet.Frame{withOptions(criticalOption, frame), withOptions(plainOption, frame)}); n != 2 {
		t.Fatalf("%d sent: %+v", n, a.Stats())
	}
	if f := receive(t, b, 1)[0]; f.Tunnel.Options != "" {
		t.Errorf("came with options %x", f.Tunnel.Options)
	}
	if s := b.Stats(); s.Reasons[tunnel.CriticalOption.String()] != 1 {
		t.Errorf("%+v", s)
	}
}
