package underlay

import (
	"net/netip"
	"testing"

	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/packet"
	pt "github.com/antrail/antrail/packet/packettest"
	"golang.org/x/sys/unix"
)

// Frames to an Egress' address arrive with that address as tun_dst. The port serves no address
// that is not an Egress' of this Node, or no longer is.
func TestEgresses(t *testing.T) {
	ns := nstest.New(t)
	egress, other := netip.MustParseAddr("127.0.0.12"), netip.MustParseAddr("127.0.0.13")
	a := open(t, ns, Config{Local: local, Peers: peersAt(peer)})
	b := open(t, ns, Config{Local: peer, Peers: peersAt(local)})
	inner := pt.TCP4(pt.Options{})
	set := func(p *Port, here, far []netip.Addr) {
		t.Helper()
		ns.Do(t, func() {
			if err := p.SetEgresses(here, far); err != nil {
				t.Fatal(err)
			}
		})
	}
	if transmit(a, egress, 7, inner) != 0 {
		t.Error("sent to an Egress not yet known")
	}
	set(a, nil, []netip.Addr{egress})
	set(b, []netip.Addr{egress}, nil)
	for _, dst := range []netip.Addr{egress, peer, egress} {
		if transmit(a, dst, 7, inner) != 1 {
			t.Fatalf("not sent to %s: %+v", dst, a.Stats())
		}
		if !readable(t, b.FD()) {
			t.Errorf("a frame to %s wakes nobody", dst)
		}
		f := receive(t, b, 1)
		if want := (packet.Tunnel{Src: local, Dst: dst, ID: 7}); f[0].Tunnel != want {
			t.Errorf("Tunnel = %+v, want %+v", f[0].Tunnel, want)
		}
		packet.Release(f)
	}
	set(b, []netip.Addr{other}, nil)
	transmit(a, egress, 7, inner)
	if readable(t, b.FD()) || b.Receive(make([]*packet.Frame, 1)) != 0 {
		t.Error("received at an address that is no Egress' any more")
	}
	set(a, nil, nil)
	if transmit(a, egress, 7, inner) != 0 {
		t.Error("sent to an Egress no longer known")
	}
}

// TestEgressOfEachKind: sockets of each tunnel and family are bound to an address that the
// Node does not have yet.
func TestEgressOfEachKind(t *testing.T) {
	for family, nodes := range underlays {
		for _, kind := range kinds {
			ns := underlay(t, nodes)
			p := open(t, ns, Config{Kind: kind, Local: nodes[0]})
			ns.Do(t, func() {
				if err := p.SetEgresses([]netip.Addr{nodes[1].Next()}, nil); err != nil {
					t.Errorf("%s, %v: %v", family, kind, err)
				}
			})
		}
	}
}

// TestEgressAddressIsToCome: a Node may listen before it has the address, but not
// where somebody else does.
func TestEgressAddressIsToCome(t *testing.T) {
	ns := nstest.New(t)
	p := open(t, ns, Config{Local: local})
	taken := netip.MustParseAddr("127.0.0.14")
	node(t, ns, taken)
	ns.Do(t, func() {
		if err := p.SetEgresses([]netip.Addr{netip.MustParseAddr("203.0.113.5")}, nil); err != nil {
			t.Error(err)
		}
		if err := p.SetEgresses([]netip.Addr{taken}, nil); err == nil {
			t.Error("no error for an address in use")
		}
	})
}

// readable reports whether poll(2) would wake up.
func readable(t *testing.T, fd int) bool {
	t.Helper()
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 200)
	if err != nil {
		t.Fatal(err)
	}
	return n > 0
}
