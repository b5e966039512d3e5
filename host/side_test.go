package host

import (
	"net/netip"
	"os/exec"
	"strings"
	"testing"

	"github.com/antrail/antrail/internal/nstest"
)

// sideState is the state that Set may change, as ip(8) and nft(8) show it.
func sideState(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, command := range []string{
		"ip -4 route", "ip -6 route", "ip neighbour show nud permanent", "ip -br address",
		"nft list table inet antrail", "nft list table netdev antrail",
	} {
		words := strings.Fields(command)
		out, err := exec.Command(words[0], words[1:]...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
		all.Write(out)
	}
	return all.String()
}

// inNode runs f on a Node that is up, with an address on its underlay.
func inNode(t *testing.T, f func(h *Host)) {
	n := node(t)
	far := nstest.New(t)
	nstest.AddVeth(t, n, "eth0", far, "eth0")
	n.AddAddress(t, "eth0", "192.168.77.102/24")
	n.Sysctl(t, "net/ipv6/conf/"+gateway+"/disable_ipv6", "0")
	n.Do(t, func() {
		h, err := Up(config())
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := h.Down(); err != nil {
				t.Error(err)
			}
		}()
		f(h)
	})
}

func fullSide() *Side {
	return &Side{
		ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/12"), netip.MustParsePrefix("fd96::/108")},
		External:     []netip.Addr{netip.MustParseAddr("192.168.77.150"), netip.MustParseAddr("fd77::150")},
		NodePortAddresses: []netip.Addr{
			netip.MustParseAddr("192.168.77.102"), netip.MustParseAddr("fd77::102"),
		},
		NodePorts: []NodePort{{6, 4, 30004}, {17, 6, 30005}},
		Egresses:  []Egress{{netip.MustParseAddr("192.168.77.112"), 1}, {netip.MustParseAddr("192.168.77.102"), 2}},
		Peers: []Peer{
			{PodCIDR: netip.MustParsePrefix("10.10.2.0/24"), Gateway: netip.MustParseAddr("10.10.2.1")},
			{PodCIDR: netip.MustParsePrefix("fd00:10:10:2::/64"), Gateway: netip.MustParseAddr("fd00:10:10:2::1")},
		},
	}
}

func TestSet(t *testing.T) {
	inNode(t, func(h *Host) {
		before := sideState(t)
		for range 2 { // the second time there is nothing to do
			if err := h.Set(fullSide()); err != nil {
				t.Fatal(err)
			}
		}
		up := sideState(t)
		for _, want := range []string{
			"169.254.0.253 dev antrea-gw0 scope link", "169.254.0.252 via 169.254.0.253 dev antrea-gw0 onlink",
			"10.96.0.0/12 via 169.254.0.253 dev antrea-gw0 onlink", "192.168.77.150 via 169.254.0.253 dev antrea-gw0 onlink",
			"fd96::/108 via fc01::aabb:ccdd:eeff dev antrea-gw0", "fd77::150 via fc01::aabb:ccdd:eeff dev antrea-gw0",
			"169.254.0.253 dev antrea-gw0 lladdr aa:bb:cc:dd:ee:ff PERMANENT",
			"192.168.77.102/24 192.168.77.112/32",
			"elements = { 192.168.77.102 . tcp . 30004 }", "elements = { fd77::102 . udp . 30005 }",
			"02:61:00:00:00:01 : 0x00000001", "0x00000001 : 192.168.77.112", "0x00000002 : 192.168.77.102",
			"10.10.2.0/24 via 10.10.2.1 dev antrea-gw0 onlink", "fd00:10:10:2::/64 via fd00:10:10:2::1 dev antrea-gw0",
			"fd00:10:10:2::1 dev antrea-gw0 lladdr aa:bb:cc:dd:ee:ff PERMANENT", "10.10.1.0/24,", "10.10.2.0/24 }", "fd00:10:10:2::/64 }",
			"meta mark set ether saddr map @egress-marks", "ether saddr set 02:61:80:00:00:00",
		} {
			if !strings.Contains(up, want) {
				t.Errorf("no %q in\n%s", want, up)
			}
		}
		if err := h.Set(&Side{}); err != nil {
			t.Fatal(err)
		}
		if after := sideState(t); after != before {
			t.Errorf("before:\n%s\nafter all went:\n%s", before, after)
		}
	})
}

// TestSetChanges: what stays is never removed in between. An address that the Node had
// before an Egress stays after it.
func TestSetChanges(t *testing.T) {
	inNode(t, func(h *Host) {
		if err := h.Set(fullSide()); err != nil {
			t.Fatal(err)
		}
		less := fullSide()
		less.External, less.Egresses, less.NodePorts = less.External[1:], nil, nil
		if err := h.Set(less); err != nil {
			t.Fatal(err)
		}
		now := sideState(t)
		for _, want := range []string{"fd77::150 via", "10.96.0.0/12 via", "192.168.77.102/24"} {
			if !strings.Contains(now, want) {
				t.Errorf("no %q in\n%s", want, now)
			}
		}
		for _, gone := range []string{"192.168.77.150", "192.168.77.112", "30004", "02:61:00:00:00:01"} {
			if strings.Contains(now, gone) {
				t.Errorf("still %q in\n%s", gone, now)
			}
		}
	})
}

// TestSetTriesAgain: Set reports what it cannot make, makes the rest, and tries again with
// the next call.
func TestSetTriesAgain(t *testing.T) {
	inNode(t, func(h *Host) {
		h.config.Underlay = netip.MustParseAddr("192.168.78.1")
		if err := h.Set(fullSide()); err == nil || !strings.Contains(err.Error(), "192.168.78.1") {
			t.Errorf("error %v does not name the address that is missing", err)
		}
		if s := sideState(t); !strings.Contains(s, "192.168.77.150 via") || strings.Contains(s, "192.168.77.112/32") {
			t.Errorf("after an error:\n%s", s)
		}
		h.config.Underlay = netip.MustParseAddr("192.168.77.102")
		if err := h.Set(fullSide()); err != nil {
			t.Error(err)
		}
		if s := sideState(t); !strings.Contains(s, "192.168.77.112/32") {
			t.Errorf("after the second try:\n%s", s)
		}
	})
}

// TestUpWithSide: the nftables table has the initial Side from the start, and Set changes
// nothing of it.
func TestUpWithSide(t *testing.T) {
	inNode(t, func(h *Host) {
		table := func() string {
			out, err := exec.Command("nft", "list", "table", "inet", "antrail").CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			return string(out)
		}
		if err := h.Set(fullSide()); err != nil {
			t.Fatal(err)
		}
		want := table()
		c := config()
		c.Side, c.Theirs = fullSide(), true
		again, err := Up(c)
		if err != nil {
			t.Fatal(err)
		}
		if got := table(); got != want || !strings.Contains(got, "30004") {
			t.Errorf("the table is\n%s\nwant\n%s", got, want)
		}
		if err := again.Set(fullSide()); err != nil {
			t.Fatal(err)
		}
		if got := table(); got != want {
			t.Errorf("the table is\n%s\nwant\n%s", got, want)
		}
	})
}

// TestUpOverTheirs: if another process's side is up, an Up that fails undoes nothing of it.
func TestUpOverTheirs(t *testing.T) {
	inNode(t, func(*Host) {
		before := sideState(t)
		c := config()
		c.Theirs = true
		c.Peers = append(c.Peers, Peer{netip.MustParsePrefix("10.10.2.0/24"), netip.MustParseAddr("fd00::1"), netip.Addr{}})
		if _, err := Up(c); err == nil {
			t.Fatal("a route to IPv4 by IPv6 was made onlink")
		}
		if after := sideState(t); !strings.Contains(after, "10.10.1.0/24 via 10.10.1.1") || !strings.Contains(after, "masquerade") {
			t.Errorf("before:\n%s\nafter:\n%s", before, after)
		}
	})
}
