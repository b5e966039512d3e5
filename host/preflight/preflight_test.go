package preflight

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antrail/antrail/internal/nstest"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

func config(t *testing.T) *Config {
	return &Config{
		Gateway: "antrea-gw0", Tunnel: "antrea-tun0", TunnelPort: 6081, Overhead: 50, MTU: 1450,
		Underlay: netip.MustParseAddr("192.168.77.102"), PodCIDRs: []netip.Prefix{netip.MustParsePrefix("10.10.0.0/24")}, CNIDir: t.TempDir(), CNIName: "10-antrail.conflist", CNIBin: t.TempDir(),
	}
}

// node is a Node with an uplink.
func node(t *testing.T) *nstest.Namespace {
	t.Helper()
	n, peer := nstest.New(t), nstest.New(t)
	nstest.AddVeth(t, n, "eth0", peer, "far")
	n.AddAddress(t, "eth0", "192.168.77.102/24")
	return n
}

// find is the line of a check.
func find(t *testing.T, all []Line, check string) Line {
	t.Helper()
	for _, l := range all {
		if l.Check == check {
			return l
		}
	}
	t.Fatalf("no line of %q in %+v", check, all)
	return Line{}
}

// TestFitNode: on a Node without conflicts every check passes. The tests of this repository
// need the same kernel features.
func TestFitNode(t *testing.T) {
	c := config(t)
	if err := os.WriteFile(filepath.Join(c.CNIDir, c.CNIName), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	node(t).Do(t, func() {
		all := Check(c)
		for _, l := range all {
			if l.State == Fail {
				t.Errorf("%+v", l)
			}
		}
		for _, check := range []string{"another agent", "CNI", "kube-proxy", "link names", "UDP port 6081", "MTU", "nftables rules", "sysctls", "other networks", "pods' ranges", "firewall"} {
			if l := find(t, all, check); l.State != OK || l.Remedy != "" {
				t.Errorf("%+v", l)
			}
		}
	})
}

// TestConflicts makes one conflict after the other.
func TestConflicts(t *testing.T) {
	for _, s := range []struct {
		command string // on the Node
		check   string
		state   State
		found   string
	}{
		{"ip link add antrea-gw0 type veth peer name far", "link names", Fail, "antrea-gw0 exists, a veth"},
		{"ip link set eth0 mtu 1499", "MTU", Fail, "eth0 has 1499, but pods' packets of 1450 need 1500 with the tunnel"},
		{"ip addr flush dev eth0", "MTU", Fail, "no link has the address 192.168.77.102"},
		{"nft add table inet antrail", "another agent", Warn, "nftables has tables named antrail"},
		{"nft 'add table ip nat; add chain ip nat KUBE-SERVICES'", "kube-proxy", Warn, "found its rules"},
		{"sysctl -qw net.ipv4.conf.eth0.rp_filter=1", "rp_filter", Warn, "eth0 drops"},
		{"ip link add cni0 type bridge", "other networks", Warn, "links cni0 (bridge or Flannel)"},
		{"for l in cali1 cali2 vxlan.calico flannel.1 flannel-v6.1; do ip link add $l type bridge; done", "other networks", Warn, " (Flannel) and 1 more"},
		{"ip link add kube-ipvs0 type bridge", "other networks", Warn, "kube-ipvs0 (kube-proxy in mode ipvs)"},
		{"ip addr add 10.10.0.9/28 dev eth0", "pods' ranges", Fail, "a route to 10.10.0.0/28 by eth0 overlaps the pods' ranges [10.10.0.0/24]"},
		{"ip route add 10.8.0.0/14 dev eth0", "pods' ranges", Fail, "a route to 10.8.0.0/14 by eth0"},
		{"nft 'add table ip filter; add chain ip filter FORWARD { type filter hook forward priority 0; policy drop; }'", "firewall", Warn, "chain ip filter FORWARD drops"},
		{"nft 'add table inet f; add chain inet f in { type filter hook input priority 0; policy drop; }; add chain inet f other { type filter hook forward priority 0; policy accept; }'",
			"firewall", Warn, "chain inet f in drops"},
	} {
		n := node(t)
		if out, err := n.Command("sh", "-c", s.command).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", s.command, err, out)
		}
		n.Do(t, func() {
			l := find(t, Check(config(t)), s.check)
			if l.State != s.state || !strings.Contains(l.Found, s.found) || l.Remedy == "" {
				t.Errorf("%s: %+v", s.command, l)
			}
		})
	}
}

// TestMTUOfTheLink: if no MTU is configured, any link's MTU is accepted.
func TestMTUOfTheLink(t *testing.T) {
	n := node(t)
	if err := n.Links().LinkSetMTU(n.Link(t, "eth0"), 1400); err != nil {
		t.Fatal(err)
	}
	c := config(t)
	c.MTU = 0
	n.Do(t, func() {
		if l := underlayMTU(c); l.State != OK || !strings.HasPrefix(l.Found, "eth0 has 1400, 50 of it for the tunnel") {
			t.Errorf("%+v", l)
		}
	})
}

// TestPortTaken: a socket on one of the Node's addresses has the port.
func TestPortTaken(t *testing.T) {
	node(t).Do(t, func() {
		conn, err := net.ListenPacket("udp", "192.168.77.102:6081")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if l := port(config(t)); l.State != Fail || l.Found != "in use" || l.Remedy == "" {
			t.Errorf("%+v", l)
		}
	})
}

// TestOtherNetworks: only files count that a runtime reads, and not ours.
func TestOtherNetworks(t *testing.T) {
	c := config(t)
	for _, name := range []string{c.CNIName, "05-other.conflist", "10-bridge.conf", "README", "x.conflist.bak"} {
		if err := os.WriteFile(filepath.Join(c.CNIDir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if l := networks(c); l.State != Warn || l.Found != "05-other.conflist, 10-bridge.conf in "+c.CNIDir {
		t.Errorf("%+v", l)
	}
	c.CNIDir += "/none"
	if l := networks(c); l.State != OK {
		t.Errorf("%+v", l)
	}
}

func TestVersion(t *testing.T) {
	for release, want := range map[string][2]int{"6.6.0-generic": {6, 6}, "5.15.0": {5, 15}, "6.18.44-x": {6, 18}} {
		if major, minor, err := version(release); err != nil || [2]int{major, minor} != want {
			t.Errorf("%s: %d.%d, %v", release, major, minor, err)
		}
	}
	if _, _, err := version("unknown"); err == nil {
		t.Error("no error")
	}
}

// TestKernels: a check names what a kernel lacks, and fails if it is too old.
func TestKernels(t *testing.T) {
	for release, want := range map[string]Line{
		"6.8.0":            {OK, "kernel", "Linux 6.8.0", ""},
		"6.7.1":            {Warn, "kernel", "Linux 6.7.1", "before 6.8: driver afxdp completes pods' checksums itself"},
		"6.1.0-56-amd64":   {Warn, "kernel", "Linux 6.1.0-56-amd64", "before 6.8: driver afxdp completes pods' checksums itself; before 6.6: connections are not offloaded, and AF_XDP takes an MTU up to 3822 only; before 6.2: the switch and pods cut UDP's large segments themselves"},
		"5.15.0-1-generic": {Fail, "kernel", "Linux 5.15.0-1-generic", "before 6.8: driver afxdp completes pods' checksums itself; before 6.6: connections are not offloaded, and AF_XDP takes an MTU up to 3822 only; before 6.2: the switch and pods cut UDP's large segments themselves; before 5.16: nftables has no egress hook, without which the agent does not start"},
		"none":             {Warn, "kernel", `"none" is not a Linux release (MAJOR.MINOR expected)`, "Linux 5.16 or newer"},
	} {
		if l := levelOf(release); l != want {
			t.Errorf("%s: %+v, want %+v", release, l, want)
		}
	}
}

func TestWrite(t *testing.T) {
	all := []Line{{OK, "kernel", "Linux 6.6", ""}, {Warn, "CNI", "another", "remove it"}}
	var b strings.Builder
	if err := Write(&b, all); err != nil {
		t.Fatal(err)
	}
	if want := "ok    kernel  Linux 6.6\nwarn  CNI     another\n              -> remove it\n"; b.String() != want {
		t.Errorf("%q\nwant\n%q", b.String(), want)
	}
	if w := Worst(all); w != Warn {
		t.Errorf("the worst is %s", w)
	}
	if w := Worst(append(all, Line{State: Fail}, Line{State: Warn})); w != Fail {
		t.Errorf("the worst is %s", w)
	}
}

// TestPlugins: each program of our network configuration must exist.
func TestPlugins(t *testing.T) {
	c := &Config{CNIDir: t.TempDir(), CNIName: "10-antrail.conflist", CNIBin: t.TempDir()}
	if l := plugins(c); l.State != OK {
		t.Errorf("nothing there: %+v", l)
	}
	write := func(dir, name, text string, mode os.FileMode) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write(c.CNIDir, c.CNIName, `{"plugins": [`, 0o600)
	if l := plugins(c); l.State != Fail {
		t.Errorf("a broken file: %+v", l)
	}
	write(c.CNIDir, c.CNIName, `{"plugins": [{"type": "antrail-cni"}, {"type": "portmap"}]}`, 0o600)
	write(c.CNIBin, "antrail-cni", "", 0o755)
	write(c.CNIBin, "portmap", "", 0o600)
	if l := plugins(c); l.State != Fail || !strings.Contains(l.Found, " names portmap,") {
		t.Errorf("portmap is no program: %+v", l)
	}
	if err := os.Chmod(filepath.Join(c.CNIBin, "portmap"), 0o755); err != nil {
		t.Fatal(err)
	}
	if l := plugins(c); l.State != OK || l.Found != "antrail-cni, portmap in "+c.CNIBin {
		t.Errorf("all there: %+v", l)
	}
}

// TestIsLeft: a link is left over if it has an agent's alias and no process holds its other
// end.
func TestIsLeft(t *testing.T) {
	n := nstest.New(t)
	nstest.AddVeth(t, n, "gw0", nstest.New(t), "far")
	n.Do(t, func() {
		for _, c := range []struct {
			alias string
			down  bool
			want  bool
		}{{"antrail /run/agent.sock", true, true}, {"antrail /run/agent.sock", false, false}, {"else", true, false}} {
			link := n.Link(t, "gw0")
			if err := netlink.LinkSetAlias(link, c.alias); err != nil {
				t.Fatal(err)
			}
			turn := netlink.LinkSetUp
			if c.down {
				turn = netlink.LinkSetDown
			}
			if err := turn(link); err != nil {
				t.Fatal(err)
			}
			if got := isLeft(n.Link(t, "gw0")); got != c.want {
				t.Errorf("%+v: %v", c, got)
			}
		}
	})
}

// TestWithout: missing capabilities are named.
func TestWithout(t *testing.T) {
	if got := without(1<<unix.CAP_CHOWN|1<<unix.CAP_NET_RAW, needed); got != "CAP_NET_ADMIN, CAP_SYS_ADMIN" {
		t.Errorf("%q", got)
	}
	if got := without(^uint64(0), append(needed, forChild...)); got != "" {
		t.Errorf("%q", got)
	}
}
