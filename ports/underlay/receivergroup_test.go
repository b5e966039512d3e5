package underlay

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/packet"
	pt "github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/tunnel"
)

// TestFloodFillsItsOwnSocket: a pod sends until the kernel drops. Another pod's frame,
// sent after that, arrives behind at most one read of the first pod's socket.
func TestFloodFillsItsOwnSocket(t *testing.T) {
	ns := nstest.New(t)
	a := open(t, ns, Config{Local: local, Peers: peersAt(peer)})
	b := open(t, ns, Config{Local: peer, Peers: peersAt(local)})
	from := func(last byte) []byte {
		return pt.UDP4(pt.Options{Src: netip.AddrFrom4([4]byte{10, 10, 1, last}), Payload: make([]byte, 1300)})
	}
	flood, other := from(5), from(6)
	sent := 0
	for ; b.Stats().Reasons[ports.RxRingFull.String()] == 0; sent++ {
		if transmit(a, peer, 7, flood); sent == 100_000 {
			t.Fatal("the kernel drops nothing")
		}
	}
	transmit(a, peer, 8, other)
	batch := make([]*packet.Frame, maxBatch)
	for before := 0; ; {
		n := b.Receive(batch)
		at := slices.IndexFunc(batch[:n], func(f *packet.Frame) bool { return f.Tunnel.ID == 8 })
		packet.Release(batch[:n])
		if at >= 0 {
			return
		}
		if before += n; n == 0 || before > maxMessages*maxDatagrams {
			t.Fatalf("%d frames of the flood of %d came, and not the other pod's", before, sent)
		}
	}
}

// TestChoosesByInnerSource: neighbouring pods' datagrams are in different sockets, and
// one pod's are in one, whatever their kind of tunnel, options, family and ports.
func TestChoosesByInnerSource(t *testing.T) {
	inners := map[string]func(last byte, port uint16) []byte{
		"IPv4": func(last byte, port uint16) []byte {
			return pt.UDP4(pt.Options{Src: netip.AddrFrom4([4]byte{10, 10, 1, last}), SrcPort: port})
		},
		"IPv6": func(last byte, port uint16) []byte {
			return pt.TCP6(pt.Options{Src: netip.MustParseAddr(fmt.Sprintf("fd00:10:10:1::1:%x", last)), SrcPort: port})
		},
	}
	for _, kind := range []tunnel.Kind{tunnel.KindGeneve, tunnel.KindVXLAN} {
		for family, inner := range inners {
			for _, trace := range []uint64{0, 77} {
				t.Run(fmt.Sprint(kind, " ", family, " ", trace), func(t *testing.T) { chooses(t, kind, trace, inner) })
			}
		}
	}
}

func chooses(t *testing.T, kind tunnel.Kind, trace uint64, inner func(last byte, port uint16) []byte) {
	ns := nstest.New(t)
	a := open(t, ns, Config{Local: local, Peers: peersAt(peer), Kind: kind})
	b := open(t, ns, Config{Local: peer, Peers: peersAt(local), Kind: kind})
	used := map[int]byte{}
	for last := byte(1); last <= numReceivers; last++ {
		var by []int
		for port := range uint16(4) {
			f := packet.NewFrame(make([]byte, 512), nil)
			f.SetBytes(inner(last, 1000+port))
			f.Tunnel = packet.Tunnel{Dst: peer, Trace: trace}
			if a.Transmit([]*packet.Frame{f}) != 1 || !readable(t, b.FD()) {
				t.Fatalf("not sent: %+v", a.Stats())
			}
			r := b.nextReady()
			b.ready = readySockets{} // for the frame to be received
			by = append(by, slices.Index(b.rxs, r))
			packet.Release(receive(t, b, 1))
		}
		if len(slices.Compact(by)) != 1 {
			t.Errorf("pod %d is in sockets %v", last, by)
		}
		if before, taken := used[by[0]]; taken {
			t.Errorf("pods %d and %d share socket %d", before, last, by[0])
		}
		used[by[0]] = last
	}
}

// TestAdoptOneSocket: an older process hands over the only socket that it has. The port
// opens those that are missing.
func TestAdoptOneSocket(t *testing.T) {
	ns := nstest.New(t)
	c := Config{Local: local, Peers: peersAt(peer), AnyNetwork: true}
	ns.Do(t, func() {
		fd, err := openReceiver(&c, local, false)
		if err != nil {
			t.Fatal(err)
		}
		p, err := Adopt(c, []int{fd})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		if fds := p.Descriptors(); len(fds) != numReceivers || fds[0] != fd {
			t.Errorf("sockets %v, want %d, the first of them %d", fds, numReceivers, fd)
		}
		if _, err := Open(c); err == nil {
			t.Error("another port is opened at the same address")
		}
	})
}
