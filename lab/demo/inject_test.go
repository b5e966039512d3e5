package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/internal/testsize"
	"github.com/antrail/antrail/lab"
	"github.com/antrail/antrail/lab/raw"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/tables"
	"github.com/antrail/antrail/tunnel"
)

// A pod that could reach a Node's tunnel could pose as any pod of any Node. Tunnel packets
// do not pass SpoofGuard, and policies match their source addresses.

// overIPv6 is examples/web-app with Nodes that reach one another over IPv6, and without
// Egresses: what a Node sends itself has the Node's own address.
func overIPv6(t *testing.T) (dir string) {
	t.Helper()
	dir = exampleAnd(t, nil, "")
	if err := errors.Join(os.Remove(filepath.Join(dir, "egress-trafficcontrol.yaml")), reachOverIPv6(dir)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// reachOverIPv6 has the Nodes of a directory reach one another over IPv6.
func reachOverIPv6(dir string) error {
	for node, address := range map[string]string{"node-a": "102", "node-b": "103"} {
		file := filepath.Join(dir, node+".yaml")
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		over6 := strings.Replace(string(text), "transportIPs: [192.168.77."+address+"]", "transportIPs: ['fd00:77::"+address+"']", 1)
		if over6 == string(text) {
			return fmt.Errorf("%s has other transportIPs", file)
		}
		if err := os.WriteFile(file, []byte(over6), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// injection is a SYN in a tunnel's header, as it would have to come to db-a:3306.
type injection struct {
	name string
	from string // the pod or Node that sends it
	src  netip.Addr
	vni  uint32
	port uint16 // the SYN's source port, by which it is known where it arrives
}

// frame is the inner frame.
func (i *injection) frame(w *world) []byte {
	f := frames{w}
	to, gateway := f.pod("db-a")
	o := packettest.Options{EthSrc: gateway, EthDst: tables.GlobalVirtualMAC, Src: i.src, Dst: to.Address.Of(w.v6), SrcPort: i.port, DstPort: 3306}
	if i.src.Is4() {
		return packettest.TCP4(o)
	}
	return packettest.TCP6(o)
}

// send has nobody (uid 65534) send it over UDP, or root, with a raw socket, over GRE,
// to an address.
func (i *injection) send(t *testing.T, w *world, to netip.Addr) {
	t.Helper()
	kind := w.lab.Topology.Tunnel
	outer := make([]byte, tunnel.HeaderLen)
	kind.Init(outer, i.vni)
	outer = append(outer, i.frame(w)...)
	if err := w.lab.In(i.from, func() error {
		if kind.Port() == 0 {
			return sendGRE(to, outer)
		}
		nobody := exec.Command("bash", "-c", fmt.Sprintf("cat >/dev/udp/%s/%d", to, kind.Port()))
		nobody.Stdin = bytes.NewReader(outer)
		nobody.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		if out, err := nobody.CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	}); err != nil {
		t.Fatalf("%s, from %s to %s: %v", i.name, i.from, to, err)
	}
}

func sendGRE(to netip.Addr, packet []byte) error {
	family := "ip6"
	if to.Is4() {
		family = "ip4"
	}
	c, err := net.Dial(family+":"+strconv.Itoa(tunnel.ProtoGRE), to.String())
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.Write(packet)
	return err
}

// synPorts are the source ports of the SYNs to port 3306 that arrived at a raw socket.
func synPorts(t *testing.T, s *raw.Socket) map[uint16]int {
	t.Helper()
	all, err := s.Drain()
	if err != nil {
		t.Fatal(err)
	}
	arrived := map[uint16]int{}
	for _, b := range all {
		l := packet.ParseLayers(b)
		if l.Proto != packet.ProtoTCP || l.L4 == 0 {
			continue
		}
		if h := packet.TCP(b[l.L4:]); h.DstPort() == 3306 && h.Flags() == packet.TCPSyn {
			arrived[h.SrcPort()]++
		}
	}
	return arrived
}

// wantLost waits until a Node has dropped exactly so many packets for a reason.
func wantLost(t *testing.T, w *world, node, reason string, since, want uint64) {
	t.Helper()
	var n uint64
	for range looks {
		l, err := w.agent(node).DroppedPackets(t.Context(), &api.DropQuery{Reason: reason, Since: since})
		if err != nil {
			t.Error(err)
			return
		}
		n = 0
		for i := range l.Packets {
			n += l.Packets[i].Packets
		}
		if n >= want {
			break
		}
		time.Sleep(lookEvery)
	}
	if n != want {
		t.Errorf("%s lost %d packets as %q, want %d", node, n, reason, want)
	}
}

// injected are labs whose tunnels are attacked.
var injected = []struct {
	name, kind, driver, encap string
	v6                        bool
}{
	{name: "Geneve over IPv4 by the card", kind: "geneve", driver: config.DriverAFXDP},
	{name: "Geneve over IPv4", kind: "geneve"},
	{name: "Geneve over IPv6", kind: "geneve", v6: true},
	{name: "VXLAN over IPv6", kind: "vxlan", v6: true},
	{name: "VXLAN over IPv4", kind: "vxlan"},
	{name: "Geneve over IPv4, hybrid", kind: "geneve", encap: "hybrid"},
	{name: "GRE over IPv4", kind: "gre"},
	{name: "GRE over IPv6", kind: "gre", v6: true},
}

// TestNothingIsInjected: a pod sends a SYN in a tunnel's header to the Nodes. A process on
// a Node sends one with a source that is not of that Node. None arrives at db-a, whose
// policy allows web, and antrail drops counts each. Packets of web-b itself arrive. A
// source outside all pod ranges passes as far as the policy.
func TestNothingIsInjected(t *testing.T) {
	t.Parallel()
	for _, c := range testsize.Some(injected) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := lab.Options{Tunnel: c.kind, TunnelDriver: c.driver, EncapMode: c.encap, IPv6Underlay: c.v6}
			if c.v6 {
				o.Manifests = overIPv6(t)
			}
			w := worldOf(t, o)
			if c.v6 {
				w = w.ipv6()
			}
			fromPods(t, w)
			fromNode(t, w)
		})
	}
}

// fromPods sends to both Nodes from client-b.
func fromPods(t *testing.T, w *world) {
	const perSource = 3
	sources := []string{"web-b", "web-a", "client-b"}
	to, since := capture(t, w, "db-a"), lostSince(t, w, "node-b")
	sent := map[uint16]string{}
	for _, node := range []string{"node-a", "node-b"} {
		for _, src := range sources {
			for range perSource {
				i := injection{name: "as " + src, from: "client-b", src: w.addresses[src], port: 30000 + uint16(len(sent))}
				i.send(t, w, w.addresses[node])
				sent[i.port] = i.name + " to " + node
			}
		}
	}
	wantLost(t, w, "node-b", "port_packet_from_the_gateway_for_a_tunnel", since, uint64(len(sent)))
	wantNone(t, w, to, sent)
}

// fromNode sends from node-b itself, whose address node-a knows.
func fromNode(t *testing.T, w *world) {
	to, since := capture(t, w, "db-a"), lostSince(t, w, "node-a")
	end := w.lab.Topology.TunnelEnd(&w.lab.Topology.Nodes[0])
	foreign := injection{"as node-a's web-a", "node-b", w.addresses["web-a"], 0, 31000}
	network := injection{"in network 5", "node-b", w.addresses["web-b"], 5, 31001}
	genuine := injection{"as its own web-b", "node-b", w.addresses["web-b"], 0, 31002}
	outside := injection{"as the outside host", "node-b", w.addresses["outside"], 0, 31003}
	before, err := w.dropped(t.Context(), "IngressDefaultRule")
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range []injection{foreign, network, outside, genuine} {
		i.send(t, w, end)
	}
	wantLost(t, w, "node-a", "port_inner_source_is_in_another_nodes_pod_range", since, 1)
	wantLost(t, w, "node-a", "port_the_tunnels_virtual_network_is_not_ours", since, 1)
	arrived := map[uint16]int{}
	for range looks {
		for port, n := range synPorts(t, to) {
			arrived[port] += n
		}
		if arrived[genuine.port] > 0 {
			break
		}
		time.Sleep(lookEvery)
	}
	if arrived[genuine.port] != 1 || arrived[foreign.port]+arrived[network.port]+arrived[outside.port] != 0 {
		t.Errorf("from source ports %v, want one from %d only", arrived, genuine.port)
	}
	if after, err := w.dropped(t.Context(), "IngressDefaultRule"); err != nil || after <= before {
		t.Errorf("the policy dropped %d packets, then %d: a source outside of all pod ranges did not get there (%v)", before, after, err)
	}
}

// capture watches what arrives at a pod.
func capture(t *testing.T, w *world, pod string) *raw.Socket {
	t.Helper()
	s, err := w.raw(pod, "eth0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// wantNone checks that none of the packets arrives at a pod where web-b's connection
// arrives.
func wantNone(t *testing.T, w *world, to *raw.Socket, sent map[uint16]string) {
	t.Helper()
	if _, err := w.greet(context.WithoutCancel(t.Context()), "web-b", "db-a:3306"); err != nil {
		t.Error(err)
	}
	arrived := synPorts(t, to)
	if len(arrived) == 0 {
		t.Error("web-b has connected, and no SYN was captured")
	}
	for port, name := range sent {
		if arrived[port] > 0 {
			t.Errorf("%s: it arrived", name)
		}
	}
}
