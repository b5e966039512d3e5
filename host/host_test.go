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
)

const gateway = "antrea-gw0"

func config() Config {
	return Config{
		Gateway:    gateway,
		Addresses:  []netip.Prefix{netip.MustParsePrefix("10.10.0.1/24")},
		PodCIDRs:   []netip.Prefix{netip.MustParsePrefix("10.10.0.0/24")},
		Peers:      []Peer{{netip.MustParsePrefix("10.10.1.0/24"), netip.MustParseAddr("10.10.1.1")}},
		TunnelPort: 6081,
		Masquerade: true,
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
	addrs, err := netlink.AddrList(nil, netlink.FAMILY_V4)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		fmt.Fprintln(&b, "address", a.IPNet, a.Label)
	}
	routes, err := netlink.RouteList(nil, netlink.FAMILY_V4)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range routes {
		fmt.Fprintln(&b, "route", r.Dst, r.Gw, r.Flags)
	}
	for _, s := range []string{"ip_forward", "conf/" + gateway + "/arp_announce", "conf/" + gateway + "/rp_filter"} {
		v, err := os.ReadFile("/proc/sys/net/ipv4/" + s)
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

func TestUpAndDown(t *testing.T) {
	node(t).Do(t, func() {
		before := state(t)
		h, err := Up(config())
		if err != nil {
			t.Fatal(err)
		}
		up := state(t)
		for _, want := range []string{
			"address 10.10.0.1/24 antrea-gw0",
			"route 10.10.1.0/24 10.10.1.1 4", // 4 is RTNH_F_ONLINK
			"ip_forward 1", "arp_announce 1", "rp_filter 2",
			"table inet antrail {",
			`iifname "antrea-gw0" accept`, `oifname "antrea-gw0" accept`,
			"udp dport 6081 fib daddr type local notrack", "udp dport 6081 fib saddr type local notrack",
			`ip saddr 10.10.0.0/24 ip daddr != @pod-cidrs oifname != "antrea-gw0" masquerade`,
			"elements = { 10.10.0.0/24, 10.10.1.0/24 }",
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

// TestDownAfterLinkGone is what happens when the gateway's tap went away first.
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
		c.Peers[0].PodCIDR = netip.MustParsePrefix("fd00::/64") // an IPv4 next hop cannot serve it
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
