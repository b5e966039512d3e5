package agent

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/internal/nstest"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// twoNodes are Nodes of program uplink with cards that face each other: node-a with two pods, node-b
// with one, and a Service of each.
type twoNodes struct {
	a, b        *nstest.Namespace
	podA, podA2 *nstest.Namespace
	podB        *nstest.Namespace
	configs     []*config.Config
}

// peerNode is a Node of program uplink. Its own values come first, then those of the other one.
const peerNode = `
nodeName: node-%[1]s
program: uplink
uplink: {mode: owned, egress: %[2]s}
gateway: {mac: "00:15:5d:0a:00:%02[3]d", addresses: [10.10.%[3]d.1/24]}
tunnel: {localAddress: 192.0.2.1%[3]d}
podCIDRs: [10.10.%[3]d.0/24]
peers:
- {name: other, address: 192.0.2.1%[4]d, podCIDRs: [10.10.%[4]d.0/24], gateways: [10.10.%[4]d.1]}
services:
- {protocol: tcp, address: "10.96.0.10:80", endpoint: "10.10.0.5:8080"}
- {protocol: tcp, address: "10.96.0.11:80", endpoint: "10.10.1.4:8080"}
ports:
- {name: eth0, ofPort: 3, role: uplink, mac: %[5]q}
- {name: antrea-br0, ofPort: 4, role: bridge, driver: tap}
`

func newTwoNodes(t *testing.T, egress string) *twoNodes {
	t.Helper()
	w := &twoNodes{a: nstest.New(t), b: nstest.New(t), podA: nstest.New(t), podA2: nstest.New(t), podB: nstest.New(t)}
	nstest.AddVeth(t, w.a, "eth0", w.b, "eth0")
	for i, n := range []*nstest.Namespace{w.a, w.b} {
		setMAC(t, n, net.HardwareAddr{2, 0, 0, 0, 0, byte(i)})
		n.SetUp(t, "eth0")
		n.SetUp(t, "lo")
		n.AddAddress(t, "eth0", fmt.Sprintf("192.0.2.1%d/24", i))
		n.Sysctl(t, "net/ipv4/conf/all/accept_local", "1")
		n.Sysctl(t, "net/ipv4/conf/all/rp_filter", "2")
	}
	for i, n := range []*nstest.Namespace{w.a, w.b} {
		other := []*nstest.Namespace{w.b, w.a}[i]
		how := egress
		if egress == config.EgressDirect {
			how += fmt.Sprintf(", router: %q", other.Link(t, "eth0").Attrs().HardwareAddr)
		}
		text := fmt.Sprintf(peerNode, string("ab"[i]), how, i, 1-i, n.Link(t, "eth0").Attrs().HardwareAddr)
		pods := [][]*nstest.Namespace{{w.podA, w.podA2}, {w.podB}}[i]
		for j, pod := range pods {
			text += w.addPod(t, n, pod, i, 4+j)
		}
		if i == 0 {
			text += "policies: [{pod: 10.10.0.5, ingress: [{protocol: tcp, port: 8080, other: 10.10.0.0/16}]}]\n"
		}
		c, err := config.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		c.Socket = filepath.Join(t.TempDir(), "agent.sock")
		w.configs = append(w.configs, c)
	}
	return w
}

// addPod connects a pod with the address 10.10.NODE.LAST, and returns its line of the configuration.
func (w *twoNodes) addPod(t *testing.T, n, pod *nstest.Namespace, node, last int) string {
	t.Helper()
	link := fmt.Sprintf("pod-%d", last)
	nstest.AddVeth(t, n, link, pod, "eth0")
	setMAC(t, pod, net.HardwareAddr{2, 0, 0, 1, byte(node), byte(last)})
	n.SetUp(t, link)
	pod.SetUp(t, "eth0")
	pod.AddAddress(t, "eth0", fmt.Sprintf("10.10.%d.%d/24", node, last))
	if err := pod.Links().RouteAdd(&netlink.Route{LinkIndex: pod.Link(t, "eth0").Attrs().Index, Gw: net.IPv4(10, 10, byte(node), 1)}); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("- {name: %s, ofPort: %d, mac: %q, address: 10.10.%d.%d}\n", link, last+1, pod.Link(t, "eth0").Attrs().HardwareAddr, node, last)
}

// setMAC gives eth0 of a namespace another address than that of its other end.
func setMAC(t *testing.T, n *nstest.Namespace, mac net.HardwareAddr) {
	t.Helper()
	if err := n.Links().LinkSetHardwareAddr(n.Link(t, "eth0"), mac); err != nil {
		t.Fatal(err)
	}
}

// nodePort is what kube-proxy does for a NodePort: the endpoint in the place of the Node's address, and the
// Node's own as the source of a pod that could answer past it.
const nodePort = `
table ip proxy {
	chain ports { type nat hook prerouting priority dstnat; ip daddr 192.0.2.10 tcp dport 30080 dnat to 10.10.0.5:8080; }
	chain sources { type nat hook postrouting priority srcnat; ct status dnat oifname "antrea-gw0" masquerade; }
}
`

// TestUplinkPeers is A-W3 and A-W7 with real sockets, by program uplink on two Nodes: a pod keeps its
// address with pods of both Nodes, by a ClusterIP too, and with its own Node. A NodePort of its own Node
// leads it to a pod by the host, past a policy that allows that. Only other Nodes see the Node's address, as the outside does. Each
// Node's gateway has the first address of the range, and the host forwards and has the routes (W-03).
func TestUplinkPeers(t *testing.T) {
	for _, egress := range []string{config.EgressLoop, config.EgressDirect} {
		t.Run(egress, func(t *testing.T) {
			w := newTwoNodes(t, egress)
			a, b := startProcess(t, w.a, w.configs[0]), startProcess(t, w.b, w.configs[1])
			wantReady(t, w.configs[0])
			wantReady(t, w.configs[1])
			nft := w.a.Command("nft", "-f", "-")
			nft.Stdin = strings.NewReader(nodePort)
			if out, err := nft.CombinedOutput(); err != nil {
				t.Fatalf("nft: %v: %s", err, out)
			}
			for _, x := range []struct {
				what, at string
				from, to *nstest.Namespace
				sees     string
			}{
				{"a pod of the Node", "10.10.0.5:8080", w.podA, w.podA2, "10.10.0.4"},
				{"a pod of another Node", "10.10.1.4:8080", w.podA, w.podB, "10.10.0.4"},
				{"back", "10.10.0.4:8080", w.podB, w.podA, "10.10.1.4"},
				{"its own Node", "192.0.2.10:8084", w.podA, w.a, "10.10.0.4"},
				{"a ClusterIP of a pod of the Node", "10.96.0.10:80", w.podA, w.podA2, "10.10.0.4"},
				{"a ClusterIP of a pod of another Node", "10.96.0.11:80", w.podA, w.podB, "10.10.0.4"},
				{"a NodePort of its own Node", "192.0.2.10:30080", w.podA, w.podA2, "10.10.0.1"},
				{"a NodePort of another Node", "192.0.2.10:30080", w.podB, w.podA2, "10.10.0.1"},
				{"the host to its pod", "10.10.0.4:8080", w.a, w.podA, "10.10.0.1"},
			} {
				if seen := reach(t, x.from, x.to, x.at); seen != x.sees {
					t.Errorf("%s: %s is seen, want %s", x.what, seen, x.sees)
				}
			}
			wantSNAT(t, exchange(t, w.podA, w.b, "192.0.2.11:8085"))
			wantHostSide(t, w.a)
			wantNoRule(t, w)
			a.stop(t)
			b.stop(t)
		})
	}
}

// wantNoRule checks that another port of a pod than that of its rule cannot be reached: the entry that
// drops is the one of the policy.
func wantNoRule(t *testing.T, w *twoNodes) {
	t.Helper()
	var err error
	w.podB.Do(t, func() { _, err = net.DialTimeout("tcp", "10.10.0.5:22", 100*time.Millisecond) })
	if err == nil || errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("a port without a rule: %v", err)
	}
	text, err := api.NewClient(w.configs[0].Socket).Get(t.Context(), "/flows", url.Values{"names": {"1"}})
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "table=IngressRule") && strings.Contains(line, "actions=drop") && !strings.Contains(line, "n_packets=0,") {
			return
		}
	}
	t.Errorf("no policy has dropped anything:\n%s", text)
}

// reach is exchange with a listener whose address is not the one that is called.
func reach(t *testing.T, from, to *nstest.Namespace, addr string) (seen string) {
	t.Helper()
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	if port == "80" || port == "30080" {
		port = "8080"
	}
	return exchangeAt(t, from, to, "0.0.0.0:"+port, addr).Addr().Unmap().String()
}

// wantHostSide checks the gateway's address, forwarding, and the route to the other Node's pods.
func wantHostSide(t *testing.T, n *nstest.Namespace) {
	t.Helper()
	for words, want := range map[string]string{
		"ip -o addr show dev antrea-gw0":    "10.10.0.1/24",
		"ip route":                          "10.10.1.0/24 via 10.10.1.1 dev antrea-gw0 onlink",
		"cat /proc/sys/net/ipv4/ip_forward": "1",
		"ip -o route get 10.10.0.4":         "dev antrea-gw0",
	} {
		f := strings.Fields(words)
		if out, err := n.Command(f[0], f[1:]...).CombinedOutput(); err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%s lacks %q: %s, %v", words, want, out, err)
		}
	}
}
