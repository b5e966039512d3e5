package agent

import (
	"fmt"
	"strings"
	"testing"

	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/internal/nstest"
)

// ownedCardNode is a Node of program uplink whose card's addresses move to antrea-br0.
const ownedCardNode = `
nodeName: node-a
program: uplink
uplink: {mode: owned, egress: %s}
gateway: {mac: "00:15:5d:0a:00:01", addresses: [10.10.0.1/24]}
tunnel: {localAddress: 192.0.2.10}
podCIDRs: [10.10.0.0/24]
ports:
- {name: eth0, ofPort: 3, role: uplink, mac: %q}
- {name: antrea-br0, ofPort: 4, role: bridge, driver: tap}
- {name: pod-a, ofPort: 5, mac: %q, address: 10.10.0.4}
`

// newOwnedWorld is newCardWorld with IPv6 and a static route by the card.
func newOwnedWorld(t *testing.T) programWorld {
	t.Helper()
	w := newCardWorld(t)
	for _, n := range []*nstest.Namespace{w.node, w.outside} {
		n.Sysctl(t, "net/ipv6/conf/eth0/accept_dad", "0")
	}
	w.node.AddAddress(t, "eth0", "2001:db8::10/64")
	w.outside.AddAddress(t, "eth0", "2001:db8::1/64")
	for _, words := range []string{"route add 203.0.113.0/24 via 192.0.2.1 src 192.0.2.10", "-6 route add default via 2001:db8::1"} {
		if out, err := w.node.Command("ip", strings.Fields(words)...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %s", words, out)
		}
	}
	return w
}

// wantNetwork waits until the Node's network is as it was.
func wantNetwork(t *testing.T, n *nstest.Namespace, before string) {
	t.Helper()
	after := ""
	defer func() {
		if after != before {
			t.Errorf("the Node's network was\n%s\nand is\n%s", before, after)
		}
	}()
	nstest.Until(t, "the Node's network is as it was", func() bool { after = hostNetwork(t, n); return after == before })
}

// wantOwned checks that the card has no IPv4 address, and the bridge the card's MAC address and all of
// its addresses and routes.
func wantOwned(t *testing.T, n *nstest.Namespace) {
	t.Helper()
	show := func(words string) string {
		out, err := n.Command("ip", strings.Fields(words)...).CombinedOutput()
		if err != nil {
			t.Fatalf("ip %s: %s", words, out)
		}
		return string(out)
	}
	if left := show("-4 -o addr show dev eth0"); left != "" {
		t.Errorf("the card has %s", left)
	}
	for words, want := range map[string]string{
		"link show dev antrea-br0":    n.Link(t, "eth0").Attrs().HardwareAddr.String(),
		"-4 addr show dev antrea-br0": "192.0.2.10/24",
		"-6 addr show dev antrea-br0": "2001:db8::10/64",
		"route get 198.51.100.7":      "via 192.0.2.1 dev antrea-br0",
		"route get 203.0.113.7":       "via 192.0.2.1 dev antrea-br0 src 192.0.2.10",
		"-6 route get 2001:db8:9::7":  "via 2001:db8::1 dev antrea-br0",
	} {
		if has := show(words); !strings.Contains(has, want) {
			t.Errorf("ip %s lacks %q:\n%s", words, want, has)
		}
	}
}

// TestOwnedCard is A-W5 and W-02 of a card that the switch owns, with A-W2 and A-W4. A stream of the host
// that began before the agent goes on while addresses move to the bridge, while the agent is killed and
// the next one starts, while the switch is killed, and when the addresses are back. After a kill of both
// processes, what systemd runs then gives the addresses back (ReturnCard), and so does `antrail
// uninstall`. While the switch runs, ReturnCard does nothing.
func TestOwnedCard(t *testing.T) {
	for _, egress := range []string{config.EgressLoop, config.EgressDirect} {
		t.Run(egress, func(t *testing.T) {
			w := newOwnedWorld(t)
			before := hostNetwork(t, w.node)
			c := cardConfig(t, w, ownedCardNode, egress)
			hosts := openStream(t, w.node, w.outside, "192.0.2.1:9000")
			hosts.talk(t, "before")
			p := startProcess(t, w.node, c)
			wantReady(t, c)
			wantOwned(t, w.node)
			hosts.talk(t, "by the bridge")
			exchange(t, w.node, w.outside, "[2001:db8::1]:8086")
			wantPodReaches(t, w)
			wantWayOut(t, c)
			pods := openStream(t, w.pod, w.outside, "198.51.100.1:9001")
			pods.talk(t, "before")

			p.Process.Kill()
			<-p.ended
			wantReturned(t, w.node, c, "")
			wantOwned(t, w.node)
			hosts.talk(t, "without an agent")
			pods.talk(t, "without an agent")
			next := startProcess(t, w.node, c)
			wantReady(t, c)
			wantOwned(t, w.node)
			killSwitch(t, c)
			next.wantExit(t, exitAgain)
			last := startProcess(t, w.node, c)
			wantReady(t, c)
			hosts.talk(t, "with another switch")
			pods.talk(t, "with another switch")
			last.stop(t)
			wantNetwork(t, w.node, before)
			hosts.talk(t, "in the end")

			for how, giveBack := range []func(){
				func() { wantReturned(t, w.node, c, "routes back to eth0") }, func() { wantUninstalled(t, w.node, c) },
			} {
				killed := startProcess(t, w.node, c)
				wantReady(t, c)
				wantOwned(t, w.node)
				killed.Process.Kill()
				<-killed.ended
				killSwitch(t, c)
				giveBack()
				hosts.talk(t, fmt.Sprint("given back ", how))
			}
			wantNetwork(t, w.node, before)
		})
	}
}

// wantReturned calls ReturnCard, and checks what it tells: "" says that it does nothing.
func wantReturned(t *testing.T, n *nstest.Namespace, c *config.Config, want string) {
	t.Helper()
	var told strings.Builder
	var err error
	n.Do(t, func() { err = ReturnCard(c.Socket, func(what string) { told.WriteString(what) }) })
	if err != nil || !strings.Contains(told.String(), want) || want == "" && told.Len() > 0 {
		t.Errorf("told %q, %v; want %q", &told, err, want)
	}
}

// wantUninstalled takes back what a killed agent left.
func wantUninstalled(t *testing.T, n *nstest.Namespace, c *config.Config) {
	t.Helper()
	var told strings.Builder
	var err error
	n.Do(t, func() { err = Uninstall(c.Socket, func(what string) { told.WriteString(what + "\n") }) })
	if err != nil || !strings.Contains(told.String(), "addresses and") {
		t.Errorf("uninstall: %v\n%s", err, &told)
	}
}

// TestOwnedCardKeepsItsAddresses: an agent that cannot start leaves the card as it was.
func TestOwnedCardKeepsItsAddresses(t *testing.T) {
	for _, s := range []struct{ prepare, old, new, want string }{
		{"", "localAddress: 192.0.2.10", "localAddress: 203.0.113.7", "eth0 does not have the Node's address 203.0.113.7"},
		{"addr change 192.0.2.10/24 dev eth0 valid_lft 600 preferred_lft 600", "", "", "192.0.2.10/24 is a lease"},
		{"tuntap add antrea-br0 mode tap", "", "", "the switch does not have port antrea-br0"},
		{"", "", "", "net.ipv4.conf.antrea-gw0.accept_local is 0"},
	} {
		w := newOwnedWorld(t)
		w.node.AddAddress(t, "lo", "203.0.113.7/32")
		if s.prepare != "" {
			if out, err := w.node.Command("ip", strings.Fields(s.prepare)...).CombinedOutput(); err != nil {
				t.Fatalf("ip %s: %s", s.prepare, out)
			}
		}
		if strings.Contains(s.want, "accept_local") {
			w.node.Sysctl(t, "net/ipv4/conf/all/accept_local", "0")
		}
		p := startProcess(t, w.node, cardConfig(t, w, strings.Replace(ownedCardNode, s.old, s.new, 1), config.EgressLoop))
		p.wantExit(t, exitFailed)
		if said := p.said.String(); !strings.Contains(said, s.want) {
			t.Errorf("the agent does not say %q:\n%s", s.want, said)
		}
		wantAddress(t, w.node)
	}
}

// wantAddress checks that the card has its address, and the way to the outside.
func wantAddress(t *testing.T, n *nstest.Namespace) {
	t.Helper()
	out, err := n.Command("ip", "route", "get", "198.51.100.7").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "via 192.0.2.1 dev eth0 src 192.0.2.10") {
		t.Errorf("the way out is %s, %v", out, err)
	}
}
