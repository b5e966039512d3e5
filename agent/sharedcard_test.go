package agent

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/internal/nstest"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// sharedNode is a Node of program uplink whose card stays the kernel's.
const sharedNode = `
nodeName: node-a
program: uplink
uplink: {mode: shared, card: eth0, egress: %s}
gateway: {mac: "00:15:5d:0a:00:01", addresses: [10.10.0.1/24]}
tunnel: {localAddress: 192.0.2.10}
podCIDRs: [10.10.0.0/24]
ports:
- {name: antrea-up0, ofPort: 3, role: uplink, driver: tap, mac: %q}
- {name: pod-a, ofPort: 5, mac: %q, address: 10.10.0.4}
`

// newCardWorld is a Node, a pod and an outside. The Node's card has its address, and a route by
// the outside to another network.
func newCardWorld(t *testing.T) programWorld {
	t.Helper()
	w := programWorld{nstest.New(t), nstest.New(t), nstest.New(t)}
	nstest.AddVeth(t, w.node, "eth0", w.outside, "eth0")
	nstest.AddVeth(t, w.node, "pod-a", w.pod, "eth0")
	for _, link := range []string{"eth0", "pod-a", "lo"} {
		w.node.SetUp(t, link)
	}
	w.outside.SetUp(t, "eth0")
	w.pod.SetUp(t, "eth0")
	w.node.AddAddress(t, "eth0", "192.0.2.10/24")
	w.outside.AddAddress(t, "eth0", "192.0.2.1/24")
	w.outside.AddAddress(t, "eth0", "198.51.100.1/32")
	w.pod.AddAddress(t, "eth0", "10.10.0.4/24")
	addDefault(t, w.pod, "10.10.0.1")
	addDefault(t, w.node, "192.0.2.1")
	ip4(t, w.outside, "route", "add", "10.10.0.0/24", "via", "192.0.2.10")
	w.node.Sysctl(t, "net/ipv4/conf/all/accept_local", "1")
	w.node.Sysctl(t, "net/ipv4/conf/all/rp_filter", "2")
	return w
}

// addDefault makes the default route by eth0 and a router.
func addDefault(t *testing.T, n *nstest.Namespace, router string) {
	t.Helper()
	if err := n.Links().RouteAdd(&netlink.Route{LinkIndex: n.Link(t, "eth0").Attrs().Index, Gw: net.ParseIP(router)}); err != nil {
		t.Fatal(err)
	}
}

// cardConfig is a configuration with the way out and the MAC addresses of a world.
func cardConfig(t *testing.T, w programWorld, text, egress string) *config.Config {
	t.Helper()
	if egress == config.EgressDirect {
		egress += fmt.Sprintf(", router: %q", w.outside.Link(t, "eth0").Attrs().HardwareAddr)
	}
	c, err := config.Parse(fmt.Appendf(nil, text, egress, w.node.Link(t, "eth0").Attrs().HardwareAddr, w.pod.Link(t, "eth0").Attrs().HardwareAddr))
	if err != nil {
		t.Fatal(err)
	}
	c.Socket = filepath.Join(t.TempDir(), "agent.sock")
	return c
}

// killSwitch kills the switch of an agent, as the kernel does to a process without memory.
func killSwitch(t *testing.T, c *config.Config) {
	t.Helper()
	info, err := door.Dial(c.SwitchSocket()).Info(t.Context())
	if err == nil {
		err = unix.Kill(info.PID, unix.SIGKILL)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// hostNetwork is all addresses, routes and links of the Node but those of the pod, as ip(8)
// writes them.
func hostNetwork(t *testing.T, n *nstest.Namespace) string {
	t.Helper()
	var all strings.Builder
	for _, what := range [][]string{{"addr", "show", "dev", "eth0"}, {"route", "show", "table", "all"}, {"link", "show", "dev", "eth0"}} {
		out, err := n.Command("ip", append([]string{"-o"}, what...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("ip %v: %v: %s", what, err, out)
		}
		all.Write(out)
	}
	return all.String()
}

// TestSharedCard is A-W2, A-W4 and A-W5 of a card that stays the kernel's. A stream of the host that
// began before the switch goes on while pods talk to the outside, while switch and agent are
// killed, and without them. A pod's stream goes on with the next switch. In the end the Node is as
// before.
func TestSharedCard(t *testing.T) {
	for _, egress := range []string{config.EgressLoop, config.EgressDirect} {
		t.Run(egress, func(t *testing.T) {
			w := newCardWorld(t)
			before := hostNetwork(t, w.node)
			c := cardConfig(t, w, sharedNode, egress)
			hosts := openStream(t, w.node, w.outside, "192.0.2.1:9000")
			hosts.talk(t, "before")
			p := startProcess(t, w.node, c)
			wantReady(t, c)
			wantPodReaches(t, w)
			besidePods(t, hosts, w)
			wantWayOut(t, c)
			pods := openStream(t, w.pod, w.outside, "198.51.100.1:9001")
			pods.talk(t, "before")

			p.Process.Kill()
			<-p.ended
			killSwitch(t, c)
			hosts.talk(t, "without a switch")
			if seen := exchange(t, w.outside, w.node, "192.0.2.10:8082"); seen.Addr().String() != "192.0.2.1" {
				t.Errorf("the host saw the outside as %v", seen)
			}
			pods.send(t, "waits")

			next := startProcess(t, w.node, c)
			wantReady(t, c)
			pods.receive(t, "waits")
			pods.talk(t, "after")
			wantPodReaches(t, w)
			hosts.talk(t, "after")
			next.stop(t)
			hosts.talk(t, "in the end")
			if after := hostNetwork(t, w.node); after != before {
				t.Errorf("the Node's network was\n%s\nand is\n%s", before, after)
			}
		})
	}
}

// wantPodReaches checks that a pod reaches the outside by TCP, UDP and ICMP, gets the error of a
// closed port, and keeps its address with the host and with clients outside.
func wantPodReaches(t *testing.T, w programWorld) {
	t.Helper()
	wantSNAT(t, exchange(t, w.pod, w.outside, "192.0.2.1:8080"))
	wantSNAT(t, datagram(t, w.pod, w.outside, "198.51.100.1:8053"))
	if out, err := w.pod.Command("ping", "-c1", "-W5", "198.51.100.1").CombinedOutput(); err != nil {
		t.Errorf("ping: %v: %s", err, out)
	}
	wantNobody(t, w.pod, "192.0.2.1:8099")
	for _, x := range []struct { // A-W3: packets without translation
		from, to *nstest.Namespace
		at, says string
	}{
		{w.node, w.pod, "10.10.0.4:8083", "10.10.0.1"},
		{w.pod, w.node, "192.0.2.10:8084", "10.10.0.4"},
		{w.outside, w.pod, "10.10.0.4:8085", "192.0.2.1"},
	} {
		if seen := exchange(t, x.from, x.to, x.at); seen.Addr().String() != x.says {
			t.Errorf("%s saw %v, want %s", x.at, seen, x.says)
		}
	}
}

// wantNobody sends a datagram to a port that nobody has, and waits for the error.
func wantNobody(t *testing.T, from *nstest.Namespace, addr string) {
	t.Helper()
	var c net.Conn
	var err error
	from.Do(t, func() { c, err = net.Dial("udp4", addr) })
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err = c.Write([]byte("word")); err == nil {
		_, err = c.Read(make([]byte, 16))
	}
	if !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("a port that nobody has: %v", err)
	}
}

// TestSharedCardRefused: a card that is not as the configuration says is not shared.
func TestSharedCardRefused(t *testing.T) {
	for _, s := range []struct{ old, new, want string }{
		{"card: eth0", "card: eth9", "eth9: Link not found"},
		{"localAddress: 192.0.2.10", "localAddress: 203.0.113.7", "eth0 does not have the Node's address 203.0.113.7"},
		{"driver: tap, mac: %q", `driver: tap, mac: "02:00:00:00:00:09", link: antrea-up0} # %q`, "eth0 has the MAC address"},
	} {
		w := newCardWorld(t)
		w.node.AddAddress(t, "lo", "203.0.113.7/32")
		p := startProcess(t, w.node, cardConfig(t, w, strings.Replace(sharedNode, s.old, s.new, 1), config.EgressLoop))
		p.wantExit(t, exitFailed)
		if said := p.said.String(); !strings.Contains(said, s.want) {
			t.Errorf("with %q the agent does not say %q:\n%s", s.new, s.want, said)
		}
	}
}
