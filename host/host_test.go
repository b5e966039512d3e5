package host

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/antrail/antrail/internal/nstest"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

const gateway = "antrea-gw0"

func config() Config {
	return Config{
		Gateway:   gateway,
		Addresses: []netip.Prefix{netip.MustParsePrefix("10.10.0.1/24"), netip.MustParsePrefix("fd00:10:10::1/64")},
		PodCIDRs:  []netip.Prefix{netip.MustParsePrefix("10.10.0.0/24"), netip.MustParsePrefix("fd00:10:10::/64")},
		Peers: []Peer{
			{PodCIDR: netip.MustParsePrefix("10.10.1.0/24"), Gateway: netip.MustParseAddr("10.10.1.1")},
			{PodCIDR: netip.MustParsePrefix("fd00:10:10:1::/64"), Gateway: netip.MustParseAddr("fd00:10:10:1::1")},
		},
		Tunnel:     Outer{Proto: 17, Port: 6081},
		Masquerade: true,
		MarkMAC:    func(mark uint32) [6]byte { return [6]byte{2, 0x61, byte(mark >> 24), 0, 0, byte(mark)} },
		Virtual: []Virtual{
			{netip.MustParseAddr("169.254.0.253"), netip.MustParseAddr("169.254.0.252"), netip.MustParseAddr("169.254.0.251")},
			{netip.MustParseAddr("fc01::aabb:ccdd:eeff"), netip.MustParseAddr("fc01::aabb:ccdd:eefe"), netip.MustParseAddr("fc01::aabb:ccdd:eefd")},
		},
		Underlay: netip.MustParseAddr("192.168.77.102"),
	}
}

// node is a namespace with a link of the gateway's name.
func node(t *testing.T) *nstest.Namespace {
	n, peer := nstest.New(t), nstest.New(t)
	nstest.AddVeth(t, n, gateway, peer, "far")
	return n
}

// state is everything that this package may change, as text.
func state(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		addAddresses(t, &b, family)
	}
	neighbours, err := netlink.NeighList(0, netlink.FAMILY_V6)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range neighbours {
		if n.State == netlink.NUD_PERMANENT {
			fmt.Fprintln(&b, "neighbour", n.IP, n.HardwareAddr)
		}
	}
	for _, s := range []string{
		"ipv4/ip_forward", "ipv4/conf/" + gateway + "/arp_announce", "ipv4/conf/" + gateway + "/rp_filter",
		"ipv4/conf/" + gateway + "/route_localnet",
		"ipv6/conf/" + gateway + "/disable_ipv6", "ipv6/conf/" + gateway + "/accept_ra",
		"ipv6/conf/all/forwarding", "ipv6/conf/lo/forwarding", "ipv6/conf/" + gateway + "/forwarding",
	} {
		v, err := os.ReadFile("/proc/sys/net/" + s)
		if os.IsNotExist(err) {
			continue // the gateway is gone
		}
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(&b, s, " ", string(v))
	}
	rules, err := exec.Command("nft", "list", "ruleset").CombinedOutput()
	if err != nil {
		t.Fatalf("nft: %v\n%s", err, rules)
	}
	return b.String() + string(rules)
}

// addAddresses adds a family's addresses and routes, except those that the kernel makes
// when a link comes up.
func addAddresses(t *testing.T, b *strings.Builder, family int) {
	t.Helper()
	addrs, err := netlink.AddrList(nil, family)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		if !a.IP.IsLinkLocalUnicast() {
			fmt.Fprintln(b, "address", a.IPNet, a.Label, a.Flags&unix.IFA_F_NODAD != 0, a.Flags&unix.IFA_F_TENTATIVE != 0)
		}
	}
	routes, err := netlink.RouteList(nil, family)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range routes {
		if !r.Dst.IP.IsLinkLocalUnicast() && !r.Dst.IP.IsMulticast() {
			fmt.Fprintln(b, "route", r.Dst, r.Gw, r.Flags)
		}
	}
}

// TestOuterPackets: conntrack ignores the tunnel's packets by protocol, and by port if they
// have one. Without a tunnel it ignores nothing.
func TestOuterPackets(t *testing.T) {
	for outer, want := range map[Outer]string{
		{Proto: 17, Port: 4789}: "udp dport 4789 fib daddr type local notrack",
		{Proto: 47}:             "meta l4proto gre fib daddr type local notrack",
		{}:                      "",
	} {
		node(t).Do(t, func() {
			c := config()
			c.Tunnel = outer
			h, err := Up(c)
			if err != nil {
				t.Fatal(err)
			}
			defer h.Down()
			if rules := state(t); strings.Count(rules, "notrack") != 2*min(1, len(want)) || !strings.Contains(rules, want) {
				t.Errorf("%+v: want %q in\n%s", outer, want, rules)
			}
		})
	}
}

// TestUpAndDown has a link that forwards IPv6 although the Node does not, and a Node that
// disables IPv6 on new links.
func TestUpAndDown(t *testing.T) {
	n := node(t)
	n.Sysctl(t, "net/ipv6/conf/"+gateway+"/disable_ipv6", "1")
	n.Sysctl(t, "net/ipv6/conf/lo/forwarding", "1")
	n.Do(t, func() {
		before := state(t)
		h, err := Up(config())
		if err != nil {
			t.Fatal(err)
		}
		up := state(t)
		for _, want := range []string{
			"address 10.10.0.1/24 antrea-gw0",
			"address fd00:10:10::1/64  true false", // without duplicate address detection, in use
			"route 10.10.1.0/24 10.10.1.1 4",       // 4 is RTNH_F_ONLINK
			"route fd00:10:10:1::/64 fd00:10:10:1::1 4",
			"neighbour fd00:10:10:1::1 aa:bb:cc:dd:ee:ff",
			"ip_forward 1", "arp_announce 1", "rp_filter 2", "route_localnet 1",
			`iifname "antrea-gw0" ip daddr 127.0.0.0/8 drop`, `iifname "antrea-gw0" ip saddr 127.0.0.0/8 drop`,
			"disable_ipv6 0", "accept_ra 0", "all/forwarding 1",
			"table inet antrail {",
			`iifname "antrea-gw0" accept`, `oifname "antrea-gw0" accept`,
			"udp dport 6081 fib daddr type local notrack", "udp dport 6081 fib saddr type local notrack",
			`ip saddr 10.10.0.0/24 ip daddr != @pod-cidrs oifname != "antrea-gw0" masquerade`,
			"elements = { 10.10.0.0/24, 10.10.1.0/24 }",
			`ip6 saddr fd00:10:10::/64 ip6 daddr != @pod-cidrs6 oifname != "antrea-gw0" masquerade`,
			"elements = { fd00:10:10::/64,",
		} {
			if !strings.Contains(up, want) {
				t.Errorf("no %q in\n%s", want, up)
			}
		}
		if err := h.Down(); err != nil {
			t.Fatal(err)
		}
		if after := state(t); after != before {
			t.Errorf("before:\n%s\nafter Down:\n%s", before, after)
		}
		if err := h.Down(); err != nil {
			t.Errorf("second Down: %v", err)
		}
	})
}

// TestOneFamily: without a gateway address of a family, that family stays as it is.
func TestOneFamily(t *testing.T) {
	for _, s := range []struct {
		name string
		at   int // in Addresses, PodCIDRs and Peers
		want []string
	}{
		{"IPv4", 0, []string{"all/forwarding 0", "disable_ipv6 1", "ip_forward 1"}},
		{"IPv6", 1, []string{"ip_forward 0", "arp_announce 0", "all/forwarding 1", "disable_ipv6 0"}},
	} {
		t.Run(s.name, func(t *testing.T) {
			n := node(t)
			n.Sysctl(t, "net/ipv6/conf/"+gateway+"/disable_ipv6", "1")
			n.Do(t, func() {
				c := config()
				c.Addresses, c.PodCIDRs, c.Peers = c.Addresses[s.at:s.at+1], c.PodCIDRs[s.at:s.at+1], c.Peers[s.at:s.at+1]
				h, err := Up(c)
				if err != nil {
					t.Fatal(err)
				}
				defer h.Down()
				up := state(t)
				for _, want := range s.want {
					if !strings.Contains(up, want) {
						t.Errorf("no %q in\n%s", want, up)
					}
				}
			})
		})
	}
}

// TestAdvertisedRouteIsKept: a Node keeps its default route from a router advertisement, or
// the agent does not start.
func TestAdvertisedRouteIsKept(t *testing.T) {
	n, router := node(t), nstest.New(t)
	nstest.AddVeth(t, n, "eth0", router, "eth0")
	n.Sysctl(t, "net/ipv6/conf/eth0/disable_ipv6", "0")
	n.SetUp(t, "eth0")
	router.SetUp(t, "eth0")
	if out, err := n.Command("ip", "-6", "route", "add", "default", "via", "fe80::1", "dev", "eth0", "proto", "ra").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	n.Sysctl(t, "net/ipv6/conf/eth0/accept_ra", "1")
	n.Do(t, func() {
		before := state(t)
		if _, err := Up(config()); err == nil || !strings.Contains(err.Error(), "net/ipv6/conf/eth0/accept_ra to 2") {
			t.Errorf("error %v", err)
		}
		if after := state(t); after != before {
			t.Errorf("before:\n%s\nafter:\n%s", before, after)
		}
	})
	n.Sysctl(t, "net/ipv6/conf/eth0/accept_ra", "2")
	n.Do(t, func() {
		h, err := Up(config())
		if err != nil {
			t.Fatal(err)
		}
		defer h.Down()
		if s := state(t); !strings.Contains(s, "fe80::1") {
			t.Errorf("the route is gone:\n%s", s)
		}
	})
}

// TestDownAfterLinkGone: Down works after the gateway's tap is gone.
func TestDownAfterLinkGone(t *testing.T) {
	node(t).Do(t, func() {
		h, err := Up(config())
		if err != nil {
			t.Fatal(err)
		}
		link, err := netlink.LinkByName(gateway)
		if err != nil {
			t.Fatal(err)
		}
		if err := netlink.LinkDel(link); err != nil {
			t.Fatal(err)
		}
		if err := h.Down(); err != nil {
			t.Errorf("Down without the link: %v", err)
		}
	})
}

func TestFailedUpLeavesNothing(t *testing.T) {
	node(t).Do(t, func() {
		before := state(t)
		c := config()
		c.Peers[0].Gateway = netip.IPv4Unspecified()
		c.Peers[0].PodCIDR = netip.MustParsePrefix("fd00::/64") // an IPv4 next hop cannot have this range
		if _, err := Up(c); err == nil {
			t.Fatal("no error")
		} else if !strings.Contains(err.Error(), "fd00::/64") {
			t.Errorf("the error does not name the route: %v", err)
		}
		if after := state(t); after != before {
			t.Errorf("before:\n%s\nafter:\n%s", before, after)
		}
	})
}

func TestUpReplacesLeftoverTable(t *testing.T) {
	node(t).Do(t, func() {
		if out, err := exec.Command("nft", "add table inet antrail; add chain inet antrail stale").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		h, err := Up(config())
		if err != nil {
			t.Fatal(err)
		}
		defer h.Down()
		if s := state(t); strings.Contains(s, "stale") {
			t.Errorf("the old table is still there:\n%s", s)
		}
	})
}
