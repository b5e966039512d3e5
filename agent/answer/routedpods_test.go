package answer

import (
	"context"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/ports/afpacket"
	"github.com/antrail/antrail/tables/layout"
	"github.com/antrail/antrail/tables/vppl3"
	"github.com/antrail/antrail/trace"
	"github.com/vishvananda/netlink"
)

// Pods of program vppl3 in network namespaces, with real links: an address of 32 bits, one MAC
// address for all, and a next hop that no machine has.

// routedPods runs the program for the pods of a Node, each in a namespace, until the test ends.
func routedPods(t *testing.T, n *layout.Node) (w *watchedNode, pods []*nstest.Namespace) {
	t.Helper()
	p, err := pipeline.Program{Name: vppl3.Program.Name, Node: n}.Load(pipeline.Options{})
	if err != nil {
		t.Fatal(err)
	}
	node := nstest.New(t)
	for i := range n.Pods {
		pod := nstest.New(t)
		attachRouted(t, p, node, pod, &n.Pods[i])
		pods = append(pods, pod)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- p.Local.Run(ctx) }()
	w = &watchedNode{Answers: New(p)}
	w.client = serveLive(t, w.Answers, "")
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return w, pods
}

// attachRouted gives a pod its link (V-01 to V-05, V-08), and the switch the port of it.
func attachRouted(t *testing.T, p *pipeline.Pipeline, node, ns *nstest.Namespace, pod *layout.Pod) {
	t.Helper()
	const next = "10.1.1.1"
	link := pod.Port.Name
	nstest.AddVeth(t, node, link, ns, "eth0")
	eth0 := ns.Link(t, "eth0")
	if err := ns.Links().LinkSetHardwareAddr(eth0, pod.Port.MAC[:]); err != nil {
		t.Fatal(err)
	}
	ns.AddAddress(t, "eth0", pod.IP().String()+"/32")
	ns.AddNeighbour(t, "eth0", next, pod.Link[:])
	for _, r := range []netlink.Route{
		{Dst: &net.IPNet{IP: net.ParseIP(next), Mask: net.CIDRMask(32, 32)}, Scope: netlink.SCOPE_LINK}, {Gw: net.ParseIP(next)},
	} {
		r.LinkIndex = eth0.Attrs().Index
		if err := ns.Links().RouteAdd(&r); err != nil {
			t.Fatal(err)
		}
	}
	node.Do(t, func() {
		port, err := afpacket.Open(afpacket.Options{Interface: link})
		if err == nil {
			err = p.Local.AddPort(pod.Port.No, port)
		}
		if err != nil {
			t.Fatal(err)
		}
	})
}

// TestDocumentsTraceOfRealPods is A-V2 with real links: the document's SYN and SYN-ACK go from one
// pod to the other and back. They arrive as the document has them, and so is their trace. The pods'
// kernels do not answer: they know no such connection.
func TestDocumentsTraceOfRealPods(t *testing.T) {
	n := vppl3.Program.Sample()
	w, pods := routedPods(t, n)
	var wires []*nstest.Wire
	for _, pod := range pods {
		silence := pod.Command("nft", "add table inet t; add chain inet t o { type filter hook output priority 0; policy drop; }")
		if out, err := silence.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		wires = append(wires, nstest.OpenWire(t, pod, "eth0"))
	}
	watching := watch(t, api.LiveTraceRequest{Text: true, Filter: "tcp"}, w)
	var ways []trace.Joined
	for _, s := range []struct {
		frame, want string
		from, to    int
	}{
		{routedSYN, "00000000000202fe167939cb08004500003c341e40003f06f1870a01010c0a0101099b8c1f908c66e43400000000a0027210c3de0000020405b40402", 0, 1},
		{routedSYNACK, "00000000000202fe6999eb9d08004500003c000040003f0625a60a0101090a01010c1f909b8c0db7e4108c66e435a012712002b30000020405b40402", 1, 0},
	} {
		b, err := hex.DecodeString(s.frame)
		if err == nil {
			err = wires[s.from].Send(b)
		}
		if err != nil {
			t.Fatal(err)
		}
		got, err := wires[s.to].Receive(10 * time.Second)
		if err != nil || hex.EncodeToString(got[:min(60, len(got))]) != s.want {
			t.Fatalf("arrived %x, %v\nthe document has %s", got, err, s.want)
		}
		ways = append(ways, watching.next(t))
	}
	text, err := os.ReadFile("testdata/document.vpp")
	if err != nil {
		t.Fatal(err)
	}
	want, got := stanzas(string(text), vpps), stanzas(inForm(t, trace.FormVPP, ways...), ours)
	for i := range max(len(want), len(got)) {
		if i >= len(got) || i >= len(want) || got[i].node != want[i].node || !slices.Equal(got[i].lines, want[i].lines) {
			t.Fatalf("node %d is\n%q\nthe document has\n%q", i, got[min(i, len(got)-1):], want[min(i, len(want)-1):])
		}
	}
}

// TestRoutedPolicies is A-V4 and A-V8 with real sockets: the client may ask the server's port, by its
// address and by the Service's, and gets answers, although nobody may ask the client. The server
// reaches itself by the Service.
func TestRoutedPolicies(t *testing.T) {
	_, pods := routedPods(t, vppl3.Program.Sample())
	client, server := pods[0], pods[1]
	for ns, addresses := range map[*nstest.Namespace][]string{server: {"10.1.1.9:8080", "10.1.1.9:8081"}, client: {"10.1.1.12:8080"}} {
		for _, a := range addresses {
			ns.Do(t, func() {
				l, err := net.Listen("tcp", a)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { l.Close() })
			})
		}
	}
	dial := func(from *nstest.Namespace, to string, wait time.Duration) (err error) {
		from.Do(t, func() {
			var c net.Conn
			if c, err = net.DialTimeout("tcp", to, wait); err == nil {
				c.Close()
			}
		})
		return err
	}
	for _, x := range []struct {
		from *nstest.Namespace
		to   string
	}{{client, "10.1.1.9:8080"}, {client, "10.96.0.9:80"}, {server, "10.96.0.9:80"}} {
		if err := dial(x.from, x.to, 20*time.Second); err != nil {
			t.Error(err)
		}
	}
	for to, from := range map[string]*nstest.Namespace{"10.1.1.9:8081": client, "10.1.1.12:8080": server} {
		if err := dial(from, to, 300*time.Millisecond); err == nil {
			t.Errorf("%s answers", to)
		}
	}
}

// TestRoutedMesh is A-V5 with real sockets: 20 pods with one MAC address, and each gets what each
// other one sends.
func TestRoutedMesh(t *testing.T) {
	const count, port = 20, 7000
	n := &layout.Node{}
	for i := range uint32(count) {
		at := layout.Port{Name: fmt.Sprintf("pod%d", i), No: i + 1, MAC: vppl3.Program.Sample().Pods[0].Port.MAC}
		n.Pods = append(n.Pods, layout.NewPod(at, netip.AddrFrom4([4]byte{10, 1, 1, byte(i + 10)})))
	}
	_, pods := routedPods(t, n)
	sockets := make([]*net.UDPConn, count)
	for i, pod := range pods {
		pod.Do(t, func() {
			c, err := net.ListenUDP("udp4", &net.UDPAddr{Port: port})
			if err != nil {
				t.Fatal(err)
			}
			sockets[i] = c
			t.Cleanup(func() { c.Close() })
		})
	}
	for i, from := range sockets {
		for j := range sockets {
			if i == j {
				continue
			}
			to := netip.AddrPortFrom(n.Pods[j].IP(), port)
			if _, err := from.WriteToUDPAddrPort(fmt.Appendf(nil, "%v to %v", n.Pods[i].IP(), to.Addr()), to); err != nil {
				t.Fatal(err)
			}
		}
	}
	for j, c := range sockets {
		seen := map[netip.Addr]bool{}
		for len(seen) < count-1 {
			b := make([]byte, 100)
			c.SetReadDeadline(time.Now().Add(20 * time.Second))
			size, from, err := c.ReadFromUDPAddrPort(b)
			if err != nil {
				t.Fatalf("%s has heard %d others: %v", n.Pods[j].Port.Name, len(seen), err)
			}
			if got, want := string(b[:size]), fmt.Sprintf("%v to %v", from.Addr(), n.Pods[j].IP()); got != want || seen[from.Addr()] {
				t.Errorf("%s got %q from %v", n.Pods[j].Port.Name, got, from)
			}
			seen[from.Addr()] = true
		}
	}
}
