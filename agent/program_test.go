package agent

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/tables/layout"
	"github.com/vishvananda/netlink"
)

// programNode is a Node whose card is a port of the switch. host0 is its own network, at the
// other end of br-int. MAC addresses are filled in.
const programNode = `
nodeName: node-a
program: windows2020
gateway: {mac: "00:15:5d:0a:00:01", addresses: [10.10.0.1/24]}
tunnel: {localAddress: 192.0.2.10}
podCIDRs: [10.10.0.0/24]
masquerade: false
ports:
- {name: uplink, ofPort: 3, role: uplink}
- {name: br-int, ofPort: 4, role: bridge}
- {name: pod-a, ofPort: 5, mac: %q, address: 10.10.0.4}
`

// programWorld is namespaces of a Node, a pod and a host outside.
type programWorld struct{ node, pod, outside *nstest.Namespace }

func newProgramWorld(t *testing.T) programWorld {
	t.Helper()
	w := programWorld{nstest.New(t), nstest.New(t), nstest.New(t)}
	nstest.AddVeth(t, w.node, "uplink", w.outside, "eth0")
	nstest.AddVeth(t, w.node, "br-int", w.node, "host0")
	nstest.AddVeth(t, w.node, "pod-a", w.pod, "eth0")
	for _, link := range []string{"uplink", "br-int", "host0", "pod-a", "lo"} {
		w.node.SetUp(t, link)
	}
	w.outside.SetUp(t, "eth0")
	w.pod.SetUp(t, "eth0")
	w.node.AddAddress(t, "host0", "192.0.2.10/24")
	w.outside.AddAddress(t, "eth0", "192.0.2.1/24")
	w.pod.AddAddress(t, "eth0", "10.10.0.4/24")
	if err := w.pod.Links().RouteAdd(&netlink.Route{LinkIndex: w.pod.Link(t, "eth0").Attrs().Index, Gw: net.IPv4(10, 10, 0, 1)}); err != nil {
		t.Fatal(err)
	}
	// A packet with the Node's own source comes from the gateway, and is to be forwarded.
	w.node.Sysctl(t, "net/ipv4/conf/all/accept_local", "1")
	w.node.Sysctl(t, "net/ipv4/conf/all/rp_filter", "2")
	return w
}

// exchange connects from one namespace to an address in another, sends a word both ways, and
// returns who the listener saw.
func exchange(t *testing.T, from, to *nstest.Namespace, addr string) netip.AddrPort {
	t.Helper()
	return exchangeAt(t, from, to, addr, addr)
}

// exchangeAt is exchange with a listener at another address.
func exchangeAt(t *testing.T, from, to *nstest.Namespace, at, addr string) netip.AddrPort {
	t.Helper()
	var l net.Listener
	var err error
	to.Do(t, func() { l, err = net.Listen("tcp", at) })
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	seen := make(chan string, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			seen <- ""
			return
		}
		defer c.Close()
		io.Copy(c, io.LimitReader(c, 4))
		seen <- c.RemoteAddr().String()
	}()
	var c net.Conn
	from.Do(t, func() { c, err = net.DialTimeout("tcp", addr, 10*time.Second) })
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte("word")); err != nil {
		t.Fatal(err)
	}
	back := make([]byte, 4)
	if _, err := io.ReadFull(c, back); err != nil || string(back) != "word" {
		t.Fatalf("%q came back: %v", back, err)
	}
	return netip.MustParseAddrPort(<-seen)
}

// TestAgentRunsProgram is A-W2 with real sockets: an agent runs program windows2020. A pod's
// connection to the outside has the Node's address and a port of the document's range there,
// and the host's own connections pass both ways (W-01, W-08, W-10, W-11, W-20, W-21).
func TestAgentRunsProgram(t *testing.T) {
	w := newProgramWorld(t)
	c, err := config.Parse(fmt.Appendf(nil, programNode, w.pod.Link(t, "eth0").Attrs().HardwareAddr))
	if err != nil {
		t.Fatal(err)
	}
	c.Socket = filepath.Join(t.TempDir(), "agent.sock")
	p := startProcess(t, w.node, c)
	wantReady(t, c)
	seen := exchange(t, w.pod, w.outside, "192.0.2.1:8080")
	if seen.Addr().String() != "192.0.2.10" || seen.Port() < 10000 || seen.Port() > 20000 {
		t.Errorf("the outside saw %v", seen)
	}
	if seen := exchange(t, w.node, w.outside, "192.0.2.1:8081"); seen.Addr().String() != "192.0.2.10" {
		t.Errorf("the outside saw the host as %v", seen)
	}
	if seen := exchange(t, w.outside, w.node, "192.0.2.10:8082"); seen.Addr().String() != "192.0.2.1" {
		t.Errorf("the host saw the outside as %v", seen)
	}
	if text := askText(t, c, "/conntrack"); !strings.Contains(text, "mark=64") && !strings.Contains(text, "mark=0x40") {
		t.Errorf("no connection has the mark:\n%s", text)
	}
	p.stop(t)
}

// TestAgentRunsTwoPrograms: one switch runs windows2020 on some ports and vppl3 on two others. Pods
// of each program reach each other and, by windows2020, the outside. No packet goes from one
// program to the other. Dumps have the tables of both, and say what each entry is for.
func TestAgentRunsTwoPrograms(t *testing.T) {
	w := newProgramWorld(t)
	routed := map[string]*nstest.Namespace{"10.1.1.12": nstest.New(t), "10.1.1.9": nstest.New(t)}
	text := fmt.Sprintf(programNode, w.pod.Link(t, "eth0").Attrs().HardwareAddr)
	for i, address := range []string{"10.1.1.12", "10.1.1.9"} {
		no := uint32(21 + i)
		text += fmt.Sprintf("- {name: routed-%d, ofPort: %[1]d, mac: \"00:00:00:00:00:02\", address: %s, program: vppl3}\n", no, address)
		nstest.AddVeth(t, w.node, fmt.Sprint("routed-", no), routed[address], "eth0")
		attachRouted(t, routed[address], address, layout.LinkMAC(no))
	}
	c, err := config.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	c.Socket = filepath.Join(t.TempDir(), "agent.sock")
	p := startProcess(t, w.node, c)
	wantReady(t, c)
	if seen := exchange(t, routed["10.1.1.12"], routed["10.1.1.9"], "10.1.1.9:8080"); seen.Addr().String() != "10.1.1.12" {
		t.Errorf("the server saw %v", seen)
	}
	if seen := exchange(t, w.pod, w.outside, "192.0.2.1:8080"); seen.Addr().String() != "192.0.2.10" {
		t.Errorf("the outside saw %v", seen)
	}
	listenAt(t, routed["10.1.1.9"], "10.1.1.9:8081")
	listenAt(t, w.pod, "10.10.0.4:8081")
	for to, from := range map[string]*nstest.Namespace{"10.1.1.9:8081": w.pod, "10.10.0.4:8081": routed["10.1.1.12"]} {
		if err := dialFrom(t, from, "", to); err == nil {
			t.Errorf("a pod of the other program reaches %s", to)
		}
	}
	flows := askText(t, c, "/flows")
	for _, want := range []string{"table=Classifier, ", `table="ip4-rewrite", `, `priority=65535,in_port="routed-21" actions=goto_table:"acl-plugin-in-ip4-fa"`} {
		if !strings.Contains(flows, want) {
			t.Errorf("no %q in\n%s", want, flows)
		}
	}
	p.stop(t)
}

// attachRouted gives a pod an address of 32 bits, and a next hop that no machine has.
func attachRouted(t *testing.T, ns *nstest.Namespace, address string, link [6]byte) {
	t.Helper()
	const next = "10.1.1.1"
	eth0 := ns.Link(t, "eth0")
	if err := ns.Links().LinkSetHardwareAddr(eth0, net.HardwareAddr{0, 0, 0, 0, 0, 2}); err != nil {
		t.Fatal(err)
	}
	ns.AddAddress(t, "eth0", address+"/32")
	ns.AddNeighbour(t, "eth0", next, link[:])
	for _, r := range []netlink.Route{
		{Dst: &net.IPNet{IP: net.ParseIP(next), Mask: net.CIDRMask(32, 32)}, Scope: netlink.SCOPE_LINK}, {Gw: net.ParseIP(next)},
	} {
		r.LinkIndex = eth0.Attrs().Index
		if err := ns.Links().RouteAdd(&r); err != nil {
			t.Fatal(err)
		}
	}
}
