package host

import (
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/antrail/antrail/internal/nstest"
	"github.com/vishvananda/netlink"
)

// TestSilence: a Node behind a link and one behind a router there go and come back.
func TestSilence(t *testing.T) {
	here, there := nstest.New(t), nstest.New(t)
	nstest.AddVeth(t, here, "eth0", there, "eth1")
	here.AddAddress(t, "eth0", "192.168.77.1/24")
	there.AddAddress(t, "eth1", "192.168.77.2/24")
	near, far := netip.MustParseAddr("192.168.77.2"), netip.MustParseAddr("10.9.9.9")
	if err := here.Links().RouteAdd(&netlink.Route{LinkIndex: here.Link(t, "eth0").Attrs().Index, Dst: ipNet(netip.MustParsePrefix("10.9.9.0/24")), Gw: near.AsSlice()}); err != nil {
		t.Fatal(err)
	}
	here.Do(t, func() {
		var s Silence
		nodes := func() []netip.Addr { return []netip.Addr{near, far, netip.MustParseAddr("172.16.0.1")} }
		wait := func(want ...netip.Addr) {
			t.Helper()
			for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
				poke(t, near)
				got, err := s.Nodes(nodes, "no-such-link")
				if err != nil {
					t.Fatal(err)
				}
				if slices.Equal(got, want) {
					return
				}
				if time.Now().After(end) {
					t.Fatalf("silent are %v, want %v", got, want)
				}
			}
		}
		wait()
		if err := there.Links().LinkSetARPOff(there.Link(t, "eth1")); err != nil {
			t.Fatal(err)
		}
		if err := netlink.NeighDel(&netlink.Neigh{LinkIndex: here.Link(t, "eth0").Attrs().Index, IP: near.AsSlice()}); err != nil {
			t.Fatal(err)
		}
		wait(near, far)
		if got, err := s.Nodes(nodes, "eth0"); err != nil || got != nil {
			t.Errorf("the gateway's neighbours are looked at: %v, %v", got, err)
		}
		if err := there.Links().LinkSetARPOn(there.Link(t, "eth1")); err != nil {
			t.Fatal(err)
		}
		wait()
	})
}

// poke sends a datagram in the calling thread's namespace.
func poke(t *testing.T, to netip.Addr) {
	t.Helper()
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(to, 9)))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = c.Write([]byte("hello")) // no socket has that port
}
