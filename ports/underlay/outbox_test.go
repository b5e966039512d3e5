package underlay

import (
	"bytes"
	"testing"

	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/packet"
	pt "github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/ports/porttest"
	"github.com/antrail/antrail/tunnel"
	"golang.org/x/sys/unix"
)

// TestKernelsThatDoNotCut runs the suite on a port that sends each datagram as a
// message of its own.
func TestKernelsThatDoNotCut(t *testing.T) {
	porttest.Run(t, func(t *testing.T) *porttest.Rig {
		r := rigs(tunnel.KindGeneve, underlays["IPv4"])(t)
		r.Port.(toPeer).lanes[0].out.whole = true
		return r
	})
}

// TestKernelRefusesToCut sends long messages by sockets for which the kernel cuts none,
// as it does for some routes: all segments arrive, and no further long message is tried.
func TestKernelRefusesToCut(t *testing.T) {
	ns := nstest.New(t)
	a := open(t, ns, Config{Local: local, Peers: peersAt(peer)})
	b := open(t, ns, Config{Local: peer, Peers: peersAt(local)})
	for _, fd := range a.senders {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_NO_CHECK, 1); err != nil {
			t.Fatal(err)
		}
	}
	want := pt.Undone(pt.TCP4(pt.Options{Payload: make([]byte, 30_000), TCPFlags: packet.TCPAck}), 1400)
	for range 2 {
		f := packet.NewFrame(make([]byte, packet.LargeBuffer), nil)
		f.CopyFrom(want)
		f.Tunnel.Dst = peer
		if a.Transmit([]*packet.Frame{f}) != 1 {
			t.Fatalf("refused: %+v", a.Stats())
		}
		if got := receive(t, b, 1)[0]; !bytes.Equal(got.Bytes(), want.Bytes()) || got.Offload != want.Offload {
			t.Errorf("%d bytes arrive, %+v", got.Len(), got.Offload)
		}
	}
	if s := a.Stats(); s.TxPackets != 44 || s.TxBytes != 60_000+44*54 || !a.lanes[0].out.whole {
		t.Errorf("%+v; tries long messages: %v", s, !a.lanes[0].out.whole)
	}
}

// TestFlowByFlow sends frames of flows in turns: those of a flow keep their
// order and become one message, those of different flows leave by sockets of
// their own.
func TestFlowByFlow(t *testing.T) {
	ns := nstest.New(t)
	p := open(t, ns, Config{Local: local, Peers: peersAt(peer)})
	c := node(t, ns, peer)
	const flows, each = 8, 4
	var batch []*packet.Frame
	for i := range flows * each {
		f := packet.NewFrame(make([]byte, 512), nil)
		f.SetBytes(pt.UDP4(pt.Options{SrcPort: 5000 + uint16(i%flows), Payload: []byte{byte(i % flows), byte(i / flows)}}))
		f.Tunnel.Dst = peer
		batch = append(batch, f)
	}
	if n := p.Transmit(batch); n != len(batch) {
		t.Fatalf("%d frames sent of %d: %+v", n, len(batch), p.Stats())
	}
	next, from := [flows]byte{}, [flows]uint16{}
	used := map[uint16]bool{}
	for range batch {
		b := make([]byte, 512)
		n, src, err := c.ReadFromUDPAddrPort(b)
		if err != nil {
			t.Fatal(err)
		}
		flow, turn := b[n-2], b[n-1]
		if turn != next[flow] || turn > 0 && from[flow] != src.Port() {
			t.Errorf("flow %d: frame %d came where %d was due, from port %d and not %d", flow, turn, next[flow], src.Port(), from[flow])
		}
		next[flow]++
		from[flow] = src.Port()
		used[src.Port()] = true
	}
	if len(used) < flows/2 {
		t.Errorf("%d flows left from %d source ports", flows, len(used))
	}
}

// TestOutboxFills sends more segments than an outbox has room for, with one call.
func TestOutboxFills(t *testing.T) {
	ns := nstest.New(t)
	a := open(t, ns, Config{Local: local, Peers: peersAt(peer)})
	b := open(t, ns, Config{Local: peer, Peers: peersAt(local)})
	want := pt.Undone(pt.TCP4(pt.Options{Payload: make([]byte, 60_000), TCPFlags: packet.TCPAck}), 50)
	f := packet.NewFrame(make([]byte, packet.LargeBuffer), nil)
	f.CopyFrom(want)
	f.Tunnel.Dst = peer
	if a.Transmit([]*packet.Frame{f}) != 1 || a.Stats().TxPackets != 1200 {
		t.Fatalf("%+v, want 1200 packets", a.Stats())
	}
	all := want.Bytes()[54:]
	for len(all) > 0 {
		p := receive(t, b, 1)[0].Bytes()[54:]
		if !bytes.HasPrefix(all, p) {
			t.Fatalf("with %d bytes to go others come", len(all))
		}
		all = all[len(p):]
	}
}

// TestTransmitBesideAnother: while one call of Transmit goes on, others send. With one
// lane for all, this test hangs.
func TestTransmitBesideAnother(t *testing.T) {
	ns := nstest.New(t)
	p := open(t, ns, Config{Local: local, Peers: peersAt(peer)})
	c := node(t, ns, peer)
	for i := range p.lanes[1:] {
		p.lanes[i].mu.Lock()
	}
	f := packet.NewFrame(make([]byte, packet.LargeBuffer), nil)
	f.SetBytes(pt.UDP4(pt.Options{Payload: []byte("beside")}))
	f.Tunnel.Dst = peer
	if p.Transmit([]*packet.Frame{f}) != 1 {
		t.Errorf("refused: %+v", p.Stats())
	}
	for i := range p.lanes[1:] {
		p.lanes[i].mu.Unlock()
	}
	if n, err := c.Read(make([]byte, 2048)); err != nil || n != tunnel.HeaderLen+f.Len() {
		t.Errorf("%d bytes arrived (%v), want %d", n, err, tunnel.HeaderLen+f.Len())
	}
}
