package uplink

import (
	"bytes"
	"net/netip"
	"slices"
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
	broadcast = [6]byte{255, 255, 255, 255, 255, 255}
)

// inBothModes runs a test by loop and by direct mode.
func inBothModes(t *testing.T, test func(*testing.T, *programtest.Switch, *layout.Node)) {
	for mode, node := range modes {
		t.Run(mode, func(t *testing.T) {
			n := node()
			test(t, programtest.New(t, Program, n), n)
		})
	}
}

// TestFourKinds is A-W1: host to outside and to a pod, answers to a pod, the host's own packets
// from the card, ARP and IPv6 both ways (W-01, W-08 to W-11).
func TestFourKinds(t *testing.T) {
	inBothModes(t, func(t *testing.T, s *programtest.Switch, n *layout.Node) {
		pod := n.Pods[0]
		same := func(what string, in, out layout.Port, frame []byte) {
			if got := s.Leaves(in, out, frame); !bytes.Equal(got, frame) {
				t.Errorf("%s was changed: %x", what, got)
			}
		}
		router := netip.MustParseAddr("192.0.2.1")
		same("W-08", n.Bridge, n.Uplink, programtest.Segment(n.Bridge.MAC, routerMAC, n.NodeIP, external, 50000, 443, packet.TCPSyn))
		same("W-11", n.Uplink, n.Bridge, programtest.Segment(routerMAC, n.Uplink.MAC, external, n.NodeIP, 443, 50000, packet.TCPSyn|packet.TCPAck))
		same("ARP for the host", n.Uplink, n.Bridge, packettest.ARPRequest(packettest.Options{EthSrc: routerMAC, EthDst: broadcast, Src: router, Dst: n.NodeIP}))
		same("ARP of the host", n.Bridge, n.Uplink, packettest.ARPRequest(packettest.Options{EthSrc: n.Bridge.MAC, EthDst: routerMAC, Src: n.NodeIP, Dst: router, Reply: true}))
		six := append(slices.Concat(n.Uplink.MAC[:], routerMAC[:], []byte{0x86, 0xdd, 0x60, 0, 0, 0, 0, 0, 59, 64}), make([]byte, 32)...)
		same("IPv6", n.Uplink, n.Bridge, six)
		same("IPv6", n.Bridge, n.Uplink, six)
		toPod := s.Leaves(n.Bridge, pod.Port, programtest.Segment(n.Bridge.MAC, routerMAC, n.NodeIP, pod.IP(), 50001, 8080, packet.TCPSyn))
		programtest.CheckWire(t, "W-09", toPod, programtest.NewWire(pod.Port.MAC, n.NodeIP, pod.IP(), 50001, 8080, 63))
	})
}

// TestShared: with a card that stays the kernel's, pods reach the outside as usual (A-W2).
// Packets that answer no pod go to the host by the gateway, to the gateway's MAC address (W-11).
func TestShared(t *testing.T) {
	n := sharedSample()
	s := programtest.New(t, Program, n)
	outside(t, s, n, n.Pods[0], 40000)
	back := s.Leaves(n.Uplink, n.Gateway, programtest.Segment(routerMAC, n.Uplink.MAC, external, n.NodeIP, 443, 15000, packet.TCPAck))
	programtest.CheckWire(t, "the host's", back, programtest.NewWire(n.Gateway.MAC, external, n.NodeIP, 443, 15000, 64))
	unasked := packettest.ICMPEcho4(packettest.Options{EthSrc: routerMAC, EthDst: n.Uplink.MAC, Src: external, Dst: n.NodeIP, ICMPID: 9, Reply: true})
	if table := s.Dropped(n.Uplink, unasked); table != "ConntrackState" {
		t.Errorf("a copy of the host's own echo reply ends in %s", table)
	}
	toPod := s.Leaves(n.Gateway, n.Pods[0].Port, programtest.Segment(n.Gateway.MAC, n.Pods[0].Port.MAC, n.NodeIP, n.Pods[0].IP(), 50001, 8080, packet.TCPSyn))
	programtest.CheckWire(t, "from the host", toPod, programtest.NewWire(n.Pods[0].Port.MAC, n.NodeIP, n.Pods[0].IP(), 50001, 8080, 64))
}

// leaves walks a pod's packet to the outside, and returns it as it leaves by the card. In loop
// mode it leaves by the gateway first: the host counts the TTL down and writes the next hop.
func leaves(t *testing.T, s *programtest.Switch, n *layout.Node, pod layout.Pod, frame []byte) []byte {
	t.Helper()
	if direct(n) {
		return s.Leaves(pod.Port, n.Uplink, frame)
	}
	first := s.Leaves(pod.Port, n.Gateway, frame)
	w := programtest.WireOf(t, first)
	if w.TTL != 64 || w.DstMAC != n.Gateway.MAC {
		t.Errorf("leaves by the gateway as %+v", w)
	}
	routed := slices.Concat(routerMAC[:], n.Bridge.MAC[:], first[12:])
	routed[packet.EthernetLen+8] = 63
	if got := s.Leaves(n.Bridge, n.Uplink, routed); !bytes.Equal(got, routed) {
		t.Errorf("W-20: the second time it was changed: %x", got)
	}
	return routed
}

// outside walks a connection of a pod to the outside and returns the port that SNAT chose.
func outside(t *testing.T, s *programtest.Switch, n *layout.Node, pod layout.Pod, port uint16) uint16 {
	t.Helper()
	syn := programtest.Segment(pod.Port.MAC, n.Gateway.MAC, pod.IP(), external, port, 443, packet.TCPSyn)
	first := leaves(t, s, n, pod, syn)
	chosen := programtest.WireOf(t, first).SrcPort
	programtest.CheckWire(t, "W-14", first, programtest.NewWire(routerMAC, n.NodeIP, external, chosen, 443, 63))
	back := programtest.Segment(routerMAC, n.Uplink.MAC, external, n.NodeIP, 443, chosen, packet.TCPSyn|packet.TCPAck)
	programtest.CheckWire(t, "W-21", s.Leaves(n.Uplink, pod.Port, back), programtest.NewWire(pod.Port.MAC, external, pod.IP(), 443, port, 63))
	more := programtest.Segment(pod.Port.MAC, n.Gateway.MAC, pod.IP(), external, port, 443, packet.TCPAck)
	programtest.CheckWire(t, "W-18", leaves(t, s, n, pod, more), programtest.NewWire(routerMAC, n.NodeIP, external, chosen, 443, 63))
	return chosen
}

// TestPodToExternal is A-W2 with ports in memory (W-12 to W-21). The direct way skips the gateway.
func TestPodToExternal(t *testing.T) {
	inBothModes(t, func(t *testing.T, s *programtest.Switch, n *layout.Node) {
		a, b := outside(t, s, n, n.Pods[0], 40001), outside(t, s, n, n.Pods[1], 40001)
		if a == b || min(a, b) < FirstSNATPort || max(a, b) > LastSNATPort {
			t.Errorf("two pods have ports %d and %d", a, b)
		}
	})
}

// TestOtherProtocols: UDP, and echo requests by their identifier, are translated and come back.
func TestOtherProtocols(t *testing.T) {
	inBothModes(t, func(t *testing.T, s *programtest.Switch, n *layout.Node) {
		pod := n.Pods[0]
		sent := programtest.WireOf(t, leaves(t, s, n, pod, packettest.UDP4(packettest.Options{EthSrc: pod.Port.MAC, EthDst: n.Gateway.MAC, Src: pod.IP(), Dst: external, SrcPort: 40000, DstPort: 53})))
		if sent.Src != n.NodeIP || sent.SrcPort < FirstSNATPort || sent.SrcPort > LastSNATPort {
			t.Errorf("UDP leaves as %+v", sent)
		}
		answer := packettest.UDP4(packettest.Options{EthSrc: routerMAC, EthDst: n.Uplink.MAC, Src: external, Dst: n.NodeIP, SrcPort: 53, DstPort: sent.SrcPort})
		programtest.CheckWire(t, "UDP", s.Leaves(n.Uplink, pod.Port, answer), programtest.NewWire(pod.Port.MAC, external, pod.IP(), 53, 40000, 63))

		echo := leaves(t, s, n, pod, packettest.ICMPEcho4(packettest.Options{EthSrc: pod.Port.MAC, EthDst: n.Gateway.MAC, Src: pod.IP(), Dst: external, ICMPID: 7}))
		id := uint16(echo[packet.EthernetLen+20+4])<<8 | uint16(echo[packet.EthernetLen+20+5])
		reply := packettest.ICMPEcho4(packettest.Options{EthSrc: routerMAC, EthDst: n.Uplink.MAC, Src: external, Dst: n.NodeIP, ICMPID: id, Reply: true})
		if dst := packet.IPv4(s.Leaves(n.Uplink, pod.Port, reply)[packet.EthernetLen:]).Dst(); dst != pod.IP() {
			t.Errorf("the echo reply goes to %v", dst)
		}
	})
}

// TestNotTranslated is A-W3. Packets keep the pod's address if they go to a pod of any Node, to the
// Node, to a ClusterIP, or to no gateway (W-13, W-22, W-23).
func TestNotTranslated(t *testing.T) {
	inBothModes(t, func(t *testing.T, s *programtest.Switch, n *layout.Node) {
		a, b := n.Pods[0], n.Pods[1]
		same := s.Leaves(a.Port, b.Port, programtest.Segment(a.Port.MAC, b.Port.MAC, a.IP(), b.IP(), 40000, 80, packet.TCPSyn))
		programtest.CheckWire(t, "one Node", same, programtest.NewWire(b.Port.MAC, a.IP(), b.IP(), 40000, 80, 64))
		way := s.Send(a.Port, programtest.Segment(a.Port.MAC, n.Gateway.MAC, a.IP(), remotePod, 40001, 80, packet.TCPSyn))
		if len(way.Left) != 1 || way.Left[0].Port != n.Tunnel.Name {
			t.Fatalf("across Nodes: %s", s.Walk(way))
		}
		programtest.CheckWire(t, "across Nodes", way.Left[0].Frame, programtest.NewWire(virtualMAC, a.IP(), remotePod, 40001, 80, 63))
		node := s.Leaves(a.Port, n.Gateway, programtest.Segment(a.Port.MAC, n.Gateway.MAC, a.IP(), n.NodeIP, 40002, 22, packet.TCPSyn))
		programtest.CheckWire(t, "the Node", node, programtest.NewWire(n.Gateway.MAC, a.IP(), n.NodeIP, 40002, 22, 64))
		if table := s.Dropped(a.Port, programtest.Segment(a.Port.MAC, broadcast, a.IP(), external, 40002, 22, packet.TCPSyn)); table != "Output" {
			t.Errorf("a broadcast ends in %s", table)
		}
		clusterIP(t, s, n)
	})
}

// clusterIP walks a connection to the sample's Service and its answer.
func clusterIP(t *testing.T, s *programtest.Switch, n *layout.Node) {
	t.Helper()
	a, b, service := n.Pods[0], n.Pods[1], n.Services[0]
	ip, port, end := service.Addr.Addr(), service.Addr.Port(), service.Endpoint.Port()
	first := s.Leaves(a.Port, b.Port, programtest.Segment(a.Port.MAC, n.Gateway.MAC, a.IP(), ip, 40003, port, packet.TCPSyn))
	programtest.CheckWire(t, "W-23", first, programtest.NewWire(b.Port.MAC, a.IP(), b.IP(), 40003, end, 63))
	answer := s.Leaves(b.Port, a.Port, programtest.Segment(b.Port.MAC, a.Port.MAC, b.IP(), a.IP(), end, 40003, packet.TCPSyn|packet.TCPAck))
	programtest.CheckWire(t, "W-23, the answer", answer, programtest.NewWire(a.Port.MAC, ip, a.IP(), port, 40003, 63))
	more := s.Leaves(a.Port, b.Port, programtest.Segment(a.Port.MAC, n.Gateway.MAC, a.IP(), ip, 40003, port, packet.TCPAck))
	programtest.CheckWire(t, "W-23, more", more, programtest.NewWire(b.Port.MAC, a.IP(), b.IP(), 40003, end, 63))
}

// TestAnswersOfAPod: a pod replies to a connection from outside that came by the gateway or the
// host's port. The reply keeps the pod's address and goes back by the gateway. The document's own
// entries take it for a connection to the outside.
func TestAnswersOfAPod(t *testing.T) {
	inBothModes(t, func(t *testing.T, s *programtest.Switch, n *layout.Node) {
		pod := n.Pods[0]
		for i, in := range []layout.Port{n.Gateway, n.Bridge} {
			port := uint16(50000 + i)
			s.Leaves(in, pod.Port, programtest.Segment(in.MAC, pod.Port.MAC, external, pod.IP(), port, 8080, packet.TCPSyn))
			back := s.Leaves(pod.Port, n.Gateway, programtest.Segment(pod.Port.MAC, n.Gateway.MAC, pod.IP(), external, 8080, port, packet.TCPSyn|packet.TCPAck))
			programtest.CheckWire(t, in.Name, back, programtest.NewWire(n.Gateway.MAC, pod.IP(), external, 8080, port, 64))
		}
	})
}

// TestHostsOwnStream is the part of A-W4 that needs no card. The host's TCP continues although
// the switch has not seen it begin, and while pods use the same outside (W-11, W-25).
func TestHostsOwnStream(t *testing.T) {
	inBothModes(t, func(t *testing.T, s *programtest.Switch, n *layout.Node) {
		outside(t, s, n, n.Pods[0], 40000)
		for _, flags := range []uint16{packet.TCPAck | packet.TCPPsh, packet.TCPRst, packet.TCPFin | packet.TCPAck} {
			in := programtest.Segment(routerMAC, n.Uplink.MAC, external, n.NodeIP, 443, 50000, flags)
			if got := s.Leaves(n.Uplink, n.Bridge, in); !bytes.Equal(got, in) {
				t.Errorf("a segment in the middle was changed: %x", got)
			}
		}
	})
}

// TestForged: a pod sends by its own addresses only, and nobody outside by a pod's.
func TestForged(t *testing.T) {
	inBothModes(t, func(t *testing.T, s *programtest.Switch, n *layout.Node) {
		a, b := n.Pods[0], n.Pods[1]
		if table := s.Dropped(a.Port, programtest.Segment(a.Port.MAC, b.Port.MAC, b.IP(), external, 1, 2, packet.TCPSyn)); table != "SpoofGuard" {
			t.Errorf("a pod's forged packet ends in %s", table)
		}
		outside(t, s, n, a, 40000)
		if table := s.Dropped(n.Uplink, programtest.Segment(routerMAC, n.Uplink.MAC, a.IP(), external, 40000, 443, packet.TCPAck)); table != "ConntrackState" {
			t.Errorf("a packet from outside with a pod's addresses ends in %s", table)
		}
	})
}

// TestExhaustion is A-W6 with ports in memory: connections to one destination get ports of the
// range, each once, until there is none. Then the next one is dropped with a reason of its
// own, and another destination has all ports again.
func TestExhaustion(t *testing.T) {
	n := directSample()
	s := programtest.New(t, Program, n)
	pod := n.Pods[0]
	syn := func(dst netip.Addr, port uint16) []byte {
		return programtest.Segment(pod.Port.MAC, n.Gateway.MAC, pod.IP(), dst, port, 443, packet.TCPSyn)
	}
	send := func(dst netip.Addr, port uint16) []*packet.Frame {
		b := syn(dst, port)
		f := packet.FrameOf(b)
		s.Ports[pod.Port.No].Inject(f)
		s.Node.Switch.Poll()
		return s.Ports[n.Uplink.No].CollectAll()
	}
	seen := map[uint16]bool{}
	s.Unwatch()
	for i := 0; len(seen) < LastSNATPort-FirstSNATPort+1; i++ { // a search ends before it has tried all ports, so more are tried
		if 20001+i > 65535 {
			t.Fatalf("%d connections use %d ports", i, len(seen))
		}
		for _, f := range send(external, uint16(20001+i)) {
			port := programtest.WireOf(t, f.Bytes()).SrcPort
			if seen[port] || port < FirstSNATPort || port > LastSNATPort {
				t.Fatalf("connection %d has port %d", i+1, port)
			}
			seen[port] = true
		}
	}
	if err := s.Watch(); err != nil {
		t.Fatal(err)
	}
	way := s.Send(pod.Port, syn(external, 20000))
	if reason := way.Hops[len(way.Hops)-1].Trace.Verdict.Reason.String(); len(way.Left) > 0 || reason != "ct_nat_exhausted" {
		t.Errorf("one connection more is dropped for %q:\n%s", reason, s.Walk(way))
	}
	if len(send(netip.MustParseAddr("198.51.100.2"), 20000)) != 1 {
		t.Error("a connection to another destination is dropped")
	}
}

// TestARPOfPods: pods find each other, their gateway and those of other Nodes, and their ARP
// reaches neither the card nor the host's own port.
func TestARPOfPods(t *testing.T) {
	inBothModes(t, func(t *testing.T, s *programtest.Switch, n *layout.Node) {
		a := n.Pods[0]
		for dst, want := range map[netip.Addr]layout.Port{n.Pods[1].IP(): n.Pods[1].Port, n.GatewayIP: n.Gateway, n.Peers[0].GatewayIPs[0]: a.Port} {
			s.Leaves(a.Port, want, packettest.ARPRequest(packettest.Options{EthSrc: a.Port.MAC, EthDst: broadcast, Src: a.IP(), Dst: dst}))
		}
		if table := s.Dropped(a.Port, packettest.ARPRequest(packettest.Options{EthSrc: a.Port.MAC, EthDst: broadcast, Src: a.IP(), Dst: external})); table != "ARPResponder" {
			t.Errorf("a question for the outside ends in %s", table)
		}
	})
}

// TestPolicies: a pod with rules sends and takes what they allow, again and again nothing else. A rule
// speaks of a Service's endpoint. Answers pass, and the Node reaches its pods.
func TestPolicies(t *testing.T) {
	n := policySample()
	s := programtest.New(t, Program, n)
	a, b := n.Pods[0], n.Pods[1]
	toPod := func(from, to layout.Pod, sport, dport uint16, flags uint16) []byte {
		return programtest.Segment(from.Port.MAC, to.Port.MAC, from.IP(), to.IP(), sport, dport, flags)
	}
	toGateway := func(from layout.Pod, dst netip.Addr, sport, dport uint16) []byte {
		return programtest.Segment(from.Port.MAC, n.Gateway.MAC, from.IP(), dst, sport, dport, packet.TCPSyn)
	}
	for _, x := range []struct {
		what  string
		in    layout.Port
		frame []byte
		table string
	}{
		{"another port of a pod", a.Port, toPod(a, b, 1, 22, packet.TCPSyn), "EgressRule"},
		{"another address outside", a.Port, toGateway(a, netip.MustParseAddr("203.0.113.1"), 2, 443), "EgressRule"},
		{"a Service whose endpoint is not allowed", a.Port, toGateway(a, netip.MustParseAddr("10.96.0.77"), 3, 443), "EgressRule"},
		{"to a port that the pod does not take", n.Tunnel, programtest.Segment(virtualMAC, b.Port.MAC, remotePod, b.IP(), 4, 8080, packet.TCPSyn), "IngressRule"},
	} {
		for range 2 { // no connection lets the second one pass
			if table := s.Dropped(x.in, x.frame); table != x.table {
				t.Errorf("%s: dropped in %q, want %s", x.what, table, x.table)
			}
		}
	}
	s.Leaves(a.Port, b.Port, toPod(a, b, 40000, 8080, packet.TCPSyn))
	s.Leaves(b.Port, a.Port, toPod(b, a, 8080, 40000, packet.TCPSyn|packet.TCPAck))
	s.Leaves(a.Port, b.Port, toPod(a, b, 40000, 8080, packet.TCPAck))
	s.Leaves(a.Port, b.Port, toGateway(a, n.Services[0].Addr.Addr(), 40001, n.Services[0].Addr.Port()))
	s.Leaves(b.Port, a.Port, toPod(b, a, 50000, 22, packet.TCPSyn))
	outside(t, s, n, a, 40002)
	s.Leaves(n.Gateway, b.Port, programtest.Segment(n.Gateway.MAC, b.Port.MAC, n.GatewayIP, b.IP(), 5, 9090, packet.TCPSyn))
}

// TestPolicyOfAService: packets of a Service's connection that a policy drops stay dropped,
// although EndpointDNAT has committed the connection.
func TestPolicyOfAService(t *testing.T) {
	n := policySample()
	n.Policies[0].Egress = &[]layout.Rule{}
	s := programtest.New(t, Program, n)
	a, service := n.Pods[0], n.Services[0].Addr
	for _, flags := range []uint16{packet.TCPSyn, packet.TCPSyn, packet.TCPAck} {
		if table := s.Dropped(a.Port, programtest.Segment(a.Port.MAC, n.Gateway.MAC, a.IP(), service.Addr(), 40000, service.Port(), flags)); table != "EgressRule" && table != "ConntrackState" {
			t.Errorf("flags %#x: dropped in %q", flags, table)
		}
	}
}
