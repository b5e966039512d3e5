package windows2020

import (
	"bytes"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/internal/programtest"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/tables/layout"
)

// The ends of the walks beside those of the sample.
var (
	external  = netip.MustParseAddr("198.51.100.1")
	remotePod = netip.MustParseAddr("10.10.1.7")
	routerMAC = [6]byte{0x00, 0x15, 0x5d, 0x00, 0x00, 0x01} // the Node's next hop
)

// TestFourKinds is A-W1: host to outside and to a pod, answers to a pod, the host's own
// packets from the card, and ARP both ways (W-01, W-08 to W-11).
func TestFourKinds(t *testing.T) {
	n := sample()
	s := programtest.New(t, Program, n)
	pod := n.Pods[0]

	out := programtest.Segment(n.Bridge.MAC, routerMAC, n.NodeIP, external, 50000, 443, packet.TCPSyn)
	if got := s.Leaves(n.Bridge, n.Uplink, out); !bytes.Equal(got, out) {
		t.Errorf("W-08: what the host sends was changed: %x", got)
	}
	in := programtest.Segment(routerMAC, n.Uplink.MAC, external, n.NodeIP, 443, 50000, packet.TCPSyn|packet.TCPAck)
	if got := s.Leaves(n.Uplink, n.Bridge, in); !bytes.Equal(got, in) {
		t.Errorf("W-11: what the host gets was changed: %x", got)
	}
	toPod := s.Leaves(n.Bridge, pod.Port, programtest.Segment(n.Bridge.MAC, routerMAC, n.NodeIP, pod.IP(), 50001, 8080, packet.TCPSyn))
	programtest.CheckWire(t, "W-09", toPod, programtest.NewWire(pod.Port.MAC, n.NodeIP, pod.IP(), 50001, 8080, 63))

	asks := packettest.ARPRequest(packettest.Options{EthSrc: routerMAC, EthDst: [6]byte{255, 255, 255, 255, 255, 255}, Src: netip.MustParseAddr("192.0.2.1"), Dst: n.NodeIP})
	if got := s.Leaves(n.Uplink, n.Bridge, asks); !bytes.Equal(got, asks) {
		t.Errorf("ARP for the host was changed: %x", got)
	}
	answers := packettest.ARPRequest(packettest.Options{EthSrc: n.Bridge.MAC, EthDst: routerMAC, Src: n.NodeIP, Dst: netip.MustParseAddr("192.0.2.1"), Reply: true})
	if got := s.Leaves(n.Bridge, n.Uplink, answers); !bytes.Equal(got, answers) {
		t.Errorf("ARP of the host was changed: %x", got)
	}
}

// outside walks a connection of a pod to the outside, both times through the switch
// (W-12, W-14, W-15, W-17 to W-21), and returns the port that SNAT chose.
func outside(t *testing.T, s *programtest.Switch, n *layout.Node, pod layout.Pod, port uint16) uint16 {
	t.Helper()
	syn := programtest.Segment(pod.Port.MAC, n.Gateway.MAC, pod.IP(), external, port, 443, packet.TCPSyn)
	first := s.Leaves(pod.Port, n.Gateway, syn)
	chosen := programtest.WireOf(t, first).SrcPort
	programtest.CheckWire(t, "W-14", first, programtest.NewWire(n.Gateway.MAC, n.NodeIP, external, chosen, 443, 64))

	routed := programtest.Segment(n.Bridge.MAC, routerMAC, n.NodeIP, external, chosen, 443, packet.TCPSyn) // by the host, which fixes the MAC
	if got := s.Leaves(n.Bridge, n.Uplink, routed); !bytes.Equal(got, routed) {
		t.Errorf("W-20: the second time it was changed: %x", got)
	}
	back := programtest.Segment(routerMAC, n.Uplink.MAC, external, n.NodeIP, 443, chosen, packet.TCPSyn|packet.TCPAck)
	programtest.CheckWire(t, "W-21", s.Leaves(n.Uplink, pod.Port, back), programtest.NewWire(pod.Port.MAC, external, pod.IP(), 443, port, 63))

	more := programtest.Segment(pod.Port.MAC, n.Gateway.MAC, pod.IP(), external, port, 443, packet.TCPAck)
	programtest.CheckWire(t, "W-18", s.Leaves(pod.Port, n.Gateway, more), programtest.NewWire(n.Gateway.MAC, n.NodeIP, external, chosen, 443, 64))
	return chosen
}

// TestPodToExternal is A-W2 with ports in memory: the source is the Node's address and a port
// of the document's range, the connection has mark 0x40 in zone 65520, and the answer
// reaches the pod.
func TestPodToExternal(t *testing.T) {
	n := sample()
	s := programtest.New(t, Program, n)
	if port := outside(t, s, n, n.Pods[0], 40000); port < firstSNATPort || port > lastSNATPort {
		t.Errorf("port %d is not between %d and %d", port, firstSNATPort, lastSNATPort)
	}
	a, b := outside(t, s, n, n.Pods[0], 40001), outside(t, s, n, n.Pods[1], 40001)
	if a == b {
		t.Errorf("two pods have port %d", a)
	}
	way := s.Send(n.Uplink, programtest.Segment(routerMAC, n.Uplink.MAC, external, n.NodeIP, 443, a, packet.TCPAck))
	if text := s.Walk(way); !strings.Contains(text, "ct_mark=0x40") || !strings.Contains(text, "zone=65520") {
		t.Errorf("the walk has neither mark nor zone:\n%s", text)
	}
	want := []string{"Classifier", "Conntrack", "ConntrackState", "DNAT", "L3Forwarding", "L2ForwardingCalculation", "IngressRule", "ConntrackCommit", "L2ForwardingOut"}
	if got := s.Tables(way); !slices.Equal(got, want) {
		t.Errorf("an answer walks %v, and should %v", got, want)
	}
}

// TestOtherProtocols: UDP, and echo requests by their identifier, are translated and come back.
func TestOtherProtocols(t *testing.T) {
	n := sample()
	s := programtest.New(t, Program, n)
	pod := n.Pods[0]
	udp := s.Leaves(pod.Port, n.Gateway, packettest.UDP4(packettest.Options{EthSrc: pod.Port.MAC, EthDst: n.Gateway.MAC, Src: pod.IP(), Dst: external, SrcPort: 40000, DstPort: 53}))
	sent := programtest.WireOf(t, udp)
	if sent.Src != n.NodeIP || sent.SrcPort < firstSNATPort || sent.SrcPort > lastSNATPort {
		t.Errorf("UDP leaves as %+v", sent)
	}
	answer := packettest.UDP4(packettest.Options{EthSrc: routerMAC, EthDst: n.Uplink.MAC, Src: external, Dst: n.NodeIP, SrcPort: 53, DstPort: sent.SrcPort})
	programtest.CheckWire(t, "UDP", s.Leaves(n.Uplink, pod.Port, answer), programtest.NewWire(pod.Port.MAC, external, pod.IP(), 53, 40000, 63))

	echo := s.Leaves(pod.Port, n.Gateway, packettest.ICMPEcho4(packettest.Options{EthSrc: pod.Port.MAC, EthDst: n.Gateway.MAC, Src: pod.IP(), Dst: external, ICMPID: 7}))
	id := uint16(echo[packet.EthernetLen+20+4])<<8 | uint16(echo[packet.EthernetLen+20+5])
	reply := packettest.ICMPEcho4(packettest.Options{EthSrc: routerMAC, EthDst: n.Uplink.MAC, Src: external, Dst: n.NodeIP, ICMPID: id, Reply: true})
	got := s.Leaves(n.Uplink, pod.Port, reply)
	if dst := packet.IPv4(got[packet.EthernetLen:]).Dst(); dst != pod.IP() {
		t.Errorf("the echo reply goes to %v", dst)
	}
}

// TestNotTranslated is A-W3: pods of this Node and another, the Node, a ClusterIP, and a pod's
// answer to a connection from outside keep the pod's address (W-13, W-22, W-23).
func TestNotTranslated(t *testing.T) {
	n := sample()
	s := programtest.New(t, Program, n)
	a, b := n.Pods[0], n.Pods[1]
	same := s.Leaves(a.Port, b.Port, programtest.Segment(a.Port.MAC, b.Port.MAC, a.IP(), b.IP(), 40000, 80, packet.TCPSyn))
	programtest.CheckWire(t, "W-22, one Node", same, programtest.NewWire(b.Port.MAC, a.IP(), b.IP(), 40000, 80, 64))

	way := s.Send(a.Port, programtest.Segment(a.Port.MAC, n.Gateway.MAC, a.IP(), remotePod, 40001, 80, packet.TCPSyn))
	if len(way.Left) != 1 || way.Left[0].Port != n.Tunnel.Name {
		t.Fatalf("W-22, across Nodes: %s", s.Walk(way))
	}
	programtest.CheckWire(t, "W-22, across Nodes", way.Left[0].Frame, programtest.NewWire(virtualMAC, a.IP(), remotePod, 40001, 80, 63))

	node := s.Leaves(a.Port, n.Gateway, programtest.Segment(a.Port.MAC, n.Gateway.MAC, a.IP(), n.NodeIP, 40002, 22, packet.TCPSyn))
	programtest.CheckWire(t, "W-13, the Node", node, programtest.NewWire(n.Gateway.MAC, a.IP(), n.NodeIP, 40002, 22, 64))

	clusterIP(t, s, n)
}

// clusterIP walks a connection to the sample's Service and its answer.
func clusterIP(t *testing.T, s *programtest.Switch, n *layout.Node) {
	t.Helper()
	a, b, service := n.Pods[0], n.Pods[1], n.Services[0]
	ip, port, to := service.Addr.Addr(), service.Addr.Port(), service.Endpoint.Port()
	first := s.Leaves(a.Port, b.Port, programtest.Segment(a.Port.MAC, n.Gateway.MAC, a.IP(), ip, 40003, port, packet.TCPSyn))
	programtest.CheckWire(t, "W-23", first, programtest.NewWire(b.Port.MAC, a.IP(), b.IP(), 40003, to, 63))
	answer := s.Leaves(b.Port, a.Port, programtest.Segment(b.Port.MAC, a.Port.MAC, b.IP(), a.IP(), to, 40003, packet.TCPSyn|packet.TCPAck))
	programtest.CheckWire(t, "W-23, the answer", answer, programtest.NewWire(a.Port.MAC, ip, a.IP(), port, 40003, 63))
	more := s.Leaves(a.Port, b.Port, programtest.Segment(a.Port.MAC, n.Gateway.MAC, a.IP(), ip, 40003, port, packet.TCPAck))
	programtest.CheckWire(t, "W-23, more", more, programtest.NewWire(b.Port.MAC, a.IP(), b.IP(), 40003, to, 63))
}

// TestNodePort is the scenario of a NodePort. kube-proxy takes the connection and opens its own,
// which enters by the gateway. The pod's reply goes back there (W-24).
func TestNodePort(t *testing.T) {
	n := sample()
	s := programtest.New(t, Program, n)
	pod := n.Pods[0]
	in := s.Leaves(n.Gateway, pod.Port, programtest.Segment(n.Gateway.MAC, pod.Port.MAC, n.GatewayIP, pod.IP(), 50000, 8080, packet.TCPSyn))
	programtest.CheckWire(t, "W-24", in, programtest.NewWire(pod.Port.MAC, n.GatewayIP, pod.IP(), 50000, 8080, 64))
	back := s.Leaves(pod.Port, n.Gateway, programtest.Segment(pod.Port.MAC, n.Gateway.MAC, pod.IP(), n.GatewayIP, 8080, 50000, packet.TCPSyn|packet.TCPAck))
	programtest.CheckWire(t, "W-24, the answer", back, programtest.NewWire(n.Gateway.MAC, pod.IP(), n.GatewayIP, 8080, 50000, 64))

	// kube-proxy may keep the client's address: then only the mark keeps the answer from SNAT.
	s.Leaves(n.Gateway, pod.Port, programtest.Segment(n.Gateway.MAC, pod.Port.MAC, external, pod.IP(), 50001, 8080, packet.TCPSyn))
	way := s.Send(pod.Port, programtest.Segment(pod.Port.MAC, n.Gateway.MAC, pod.IP(), external, 8080, 50001, packet.TCPSyn|packet.TCPAck))
	if len(way.Left) != 1 || way.Left[0].Port != n.Gateway.Name || !slices.Contains(s.Tables(way), "L2ForwardingCalculation") {
		t.Fatalf("W-13, Service: %s", s.Walk(way))
	}
	programtest.CheckWire(t, "W-13, Service", way.Left[0].Frame, programtest.NewWire(n.Gateway.MAC, pod.IP(), external, 8080, 50001, 64))
}

// TestAnswersOfAPod: the document's entry for the outside does not match +new. So a pod's reply
// to a connection that the host forwarded gets the bit, and leaves by the gateway. Its source
// stays the pod's.
func TestAnswersOfAPod(t *testing.T) {
	n := sample()
	s := programtest.New(t, Program, n)
	pod := n.Pods[0]
	s.Leaves(n.Bridge, pod.Port, programtest.Segment(n.Bridge.MAC, routerMAC, external, pod.IP(), 50000, 8080, packet.TCPSyn))
	way := s.Send(pod.Port, programtest.Segment(pod.Port.MAC, n.Gateway.MAC, pod.IP(), external, 8080, 50000, packet.TCPSyn|packet.TCPAck))
	if slices.Contains(s.Tables(way), "L2ForwardingCalculation") {
		t.Errorf("the answer did not get the bit:\n%s", s.Walk(way))
	}
	if len(way.Left) != 1 || way.Left[0].Port != n.Gateway.Name {
		t.Fatalf("the answer leaves elsewhere:\n%s", s.Walk(way))
	}
	programtest.CheckWire(t, "answer", way.Left[0].Frame, programtest.NewWire(n.Gateway.MAC, pod.IP(), external, 8080, 50000, 64))
}

// TestHostsOwnStream is the part of A-W4 that needs no card. The host's TCP continues although
// the switch has not seen it begin, and while pods use the same outside (W-11, W-25).
func TestHostsOwnStream(t *testing.T) {
	n := sample()
	s := programtest.New(t, Program, n)
	outside(t, s, n, n.Pods[0], 40000)
	for i := range 4 {
		in := programtest.Segment(routerMAC, n.Uplink.MAC, external, n.NodeIP, 443, uint16(50000+i), packet.TCPAck|packet.TCPPsh)
		if got := s.Leaves(n.Uplink, n.Bridge, in); !bytes.Equal(got, in) {
			t.Errorf("a segment in the middle was changed: %x", got)
		}
		rst := programtest.Segment(routerMAC, n.Uplink.MAC, external, n.NodeIP, 443, uint16(50000+i), packet.TCPRst)
		s.Leaves(n.Uplink, n.Bridge, rst)
	}
}

// TestExhaustion is A-W6 with ports in memory. Connections to one destination get all ports of
// the range, each once. Then the next one is dropped with its own reason. Another destination has
// all ports again. Like Open vSwitch, a search for a free port ends before it has tried all, so
// the test opens more connections than there are ports.
func TestExhaustion(t *testing.T) {
	n := sample()
	s := programtest.New(t, Program, n)
	pod := n.Pods[0]
	const ports = lastSNATPort - firstSNATPort + 1
	seen := map[uint16]bool{}
	s.Unwatch()
	for i := 0; len(seen) < ports; i++ {
		if 20001+i > 65535 {
			t.Fatalf("%d connections use %d ports of %d", i, len(seen), ports)
		}
		for _, f := range sendUnwatched(s, pod, n.Gateway, external, uint16(20001+i)) {
			port := programtest.WireOf(t, f.Bytes()).SrcPort
			if seen[port] || port < firstSNATPort || port > lastSNATPort {
				t.Fatalf("connection %d has port %d", i+1, port)
			}
			seen[port] = true
		}
		if i < ports/2 && len(seen) != i+1 {
			t.Fatalf("connection %d is dropped, and half of the ports are free", i+1)
		}
	}
	if err := s.Watch(); err != nil {
		t.Fatal(err)
	}
	way := s.Send(pod.Port, programtest.Segment(pod.Port.MAC, n.Gateway.MAC, pod.IP(), external, 20000, 443, packet.TCPSyn))
	if reason := way.Hops[len(way.Hops)-1].Trace.Verdict.Reason.String(); len(way.Left) > 0 || reason != "ct_nat_exhausted" {
		t.Errorf("one connection more is dropped for %q:\n%s", reason, s.Walk(way))
	}
	if len(sendUnwatched(s, pod, n.Gateway, netip.MustParseAddr("198.51.100.2"), 20000)) != 1 {
		t.Error("a connection to another destination is dropped")
	}
}

// sendUnwatched opens a connection, and returns what leaves by a port.
func sendUnwatched(s *programtest.Switch, pod layout.Pod, out layout.Port, dst netip.Addr, port uint16) []*packet.Frame {
	syn := packettest.TCP4(packettest.Options{EthSrc: pod.Port.MAC, EthDst: sample().Gateway.MAC, Src: pod.IP(), Dst: dst, SrcPort: port, DstPort: 443, TCPFlags: packet.TCPSyn})
	s.Ports[pod.Port.No].Inject(frameOf(syn))
	s.Node.Switch.Poll()
	return s.Ports[out.No].CollectAll()
}

// frameOf makes a frame of bytes.
func frameOf(b []byte) *packet.Frame {
	f := packet.FrameOf(b)
	return f
}

// TestForged: a pod sends by its own addresses only.
func TestForged(t *testing.T) {
	n := sample()
	s := programtest.New(t, Program, n)
	a, b := n.Pods[0], n.Pods[1]
	if table := s.Dropped(a.Port, programtest.Segment(a.Port.MAC, b.Port.MAC, b.IP(), external, 1, 2, packet.TCPSyn)); table != "SpoofGuard" {
		t.Errorf("a forged packet ends in %s", table)
	}
}

// TestARPOfPods: pods find each other and the gateways of other Nodes, and their ARP does not
// reach the card.
func TestARPOfPods(t *testing.T) {
	n := sample()
	s := programtest.New(t, Program, n)
	a := n.Pods[0]
	ask := func(dst netip.Addr) []string {
		way := s.Send(a.Port, packettest.ARPRequest(packettest.Options{EthSrc: a.Port.MAC, EthDst: [6]byte{255, 255, 255, 255, 255, 255}, Src: a.IP(), Dst: dst}))
		var all []string
		for _, l := range way.Left {
			all = append(all, l.Port)
		}
		slices.Sort(all)
		return all
	}
	if got := ask(n.Pods[1].IP()); !slices.Equal(got, []string{"antrea-gw0", "pod-b"}) && !slices.Equal(got, []string{"antrea-gw0", "antrea-tun0", "pod-b"}) {
		t.Errorf("a question goes to %v", got)
	}
	if got := ask(n.Peers[0].GatewayIPs[0]); !slices.Equal(got, []string{"pod-a"}) {
		t.Errorf("the answer for another Node's gateway goes to %v", got)
	}
}
