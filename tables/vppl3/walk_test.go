package vppl3

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/internal/programtest"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/tables/layout"
)

// The frames of the document as they enter. Their last 14 bytes are such that its checksums
// hold.
const (
	syn    = "02fe6999eb9d00000000000208004500003c341e40004006f0870a01010c0a0101099b8c1f908c66e43400000000a0027210c3de0000020405b40402080a0063cfdf0000000001030307"
	synACK = "02fe167939cb00000000000208004500003c00004000400624a60a0101090a01010c1f909b8c0db7e4108c66e435a012712002b30000020405b40402080a0063cfdf0063cfdf01030307"
)

// The first 60 bytes of both as they leave, from the document's ip4-rewrite.
const (
	synOut    = "00000000000202fe167939cb08004500003c341e40003f06f1870a01010c0a01" + "01099b8c1f908c66e43400000000a0027210c3de0000020405b40402"
	synACKOut = "00000000000202fe6999eb9d08004500003c000040003f0625a60a0101090a01" + "010c1f909b8c0db7e4108c66e435a012712002b30000020405b40402"
)

// TestDocumentsExchange is A-V2 and the routed half of A-V3: the SYN and the SYN-ACK walk the
// document's nodes, and leave with its bytes (V-10, V-13, V-14, V-16 to V-19).
func TestDocumentsExchange(t *testing.T) {
	n := sample()
	s := programtest.New(t, Program, n)
	client, server := n.Pods[0].Port, n.Pods[1].Port
	for _, c := range []struct {
		in, out layout.Port
		frame   string
		want    string
		nodes   string
	}{
		{client, server, syn, synOut, "acl-plugin-in-ip4-fa nat44-out2in ip4-lookup ip4-rewrite acl-plugin-out-ip4-fa"},
		{server, client, synACK, synACKOut, "acl-plugin-in-ip4-fa nat44-in2out nat44-in2out-slowpath ip4-lookup ip4-rewrite acl-plugin-out-ip4-fa"},
	} {
		way := s.Send(c.in, unhex(t, c.frame))
		if len(way.Left) != 1 || way.Left[0].Port != c.out.Name {
			t.Fatalf("leaves by %v, and should by %s\n%s", way.Left, c.out.Name, s.Walk(way))
		}
		if got := hex.EncodeToString(way.Left[0].Frame[:60]); got != c.want {
			t.Errorf("leaves as\n%s\nthe document has\n%s", got, c.want)
		}
		if got := strings.Join(s.Tables(way), " "); got != c.nodes {
			t.Errorf("walks\n%s\nthe document has\n%s", got, c.nodes)
		}
	}
}

func unhex(t *testing.T, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// segment is a segment from a pod to its own next hop, for any destination.
func segment(from layout.Pod, to netip.Addr, srcPort, dstPort uint16, flags uint16) []byte {
	return packettest.TCP4(packettest.Options{
		EthSrc: from.Port.MAC, EthDst: from.Link, Src: from.IP(), Dst: to, SrcPort: srcPort, DstPort: dstPort, TCPFlags: flags, Seq: 9, Ack: 9, Window: 500,
	})
}

// TestPolicies is A-V4: a connection needs a client that may send and a server that may receive.
// The reply passes although no pod may reach the client (V-11, V-15, V-19).
func TestPolicies(t *testing.T) {
	for _, sends := range []bool{true, false} {
		for _, takes := range []bool{true, false} {
			t.Run(fmt.Sprintf("client %t, server %t", sends, takes), func(t *testing.T) { policyCase(t, sends, takes) })
		}
	}
}

// policyCase opens a connection. sends and takes say which side's policy allows it.
func policyCase(t *testing.T, sends, takes bool) {
	t.Helper()
	n := sample()
	if !sends {
		n.Policies[0].Egress = &[]layout.Rule{{Proto: 6, Port: 443}}
	}
	if !takes {
		n.Policies[1].Ingress = &[]layout.Rule{{Proto: 6, Port: 8080, Other: netip.MustParsePrefix("10.1.1.77/32")}}
	}
	s := programtest.New(t, Program, n)
	client, server := n.Pods[0], n.Pods[1]
	begin := segment(client, server.IP(), 40000, 8080, packet.TCPSyn)
	if !sends || !takes {
		for range 2 { // no session lets the second one pass
			if table := s.Dropped(client.Port, begin); table != "acl-plugin-out-ip4-fa" {
				t.Errorf("dropped in %s", table)
			}
		}
		return
	}
	s.Leaves(client.Port, server.Port, begin)
	s.Leaves(server.Port, client.Port, segment(server, client.IP(), 8080, 40000, packet.TCPSyn|packet.TCPAck))
	s.Leaves(client.Port, server.Port, segment(client, server.IP(), 40000, 8080, packet.TCPAck))
	if table := s.Dropped(server.Port, segment(server, client.IP(), 50000, 22, packet.TCPSyn)); table != "acl-plugin-out-ip4-fa" {
		t.Errorf("the server's own connection to the client is dropped in %s", table)
	}
}

// TestNoPolicies: a pod that no policy names has no session (V-11).
func TestNoPolicies(t *testing.T) {
	n := sample()
	n.Policies = nil
	s := programtest.New(t, Program, n)
	a, b := n.Pods[0], n.Pods[1]
	for _, flags := range []uint16{packet.TCPSyn, packet.TCPAck} {
		s.Leaves(a.Port, b.Port, segment(a, b.IP(), 40000, 22, flags))
	}
	if got := s.Conntrack.Stats().Entries; got != 0 {
		t.Errorf("%d sessions", got)
	}
}

// TestService is A-V8 for a Service of another pod: the static mapping translates the request,
// and nat44-in2out the reply (V-12, V-18).
func TestService(t *testing.T) {
	n := sample()
	s := programtest.New(t, Program, n)
	client, server, vip := n.Pods[0], n.Pods[1], n.Services[0].Addr
	for _, flags := range []uint16{packet.TCPSyn, packet.TCPAck} {
		in := s.Leaves(client.Port, server.Port, segment(client, vip.Addr(), 40000, vip.Port(), flags))
		checkEnds(t, in, "10.1.1.12:40000", "10.1.1.9:8080")
		back := s.Leaves(server.Port, client.Port, segment(server, client.IP(), 8080, 40000, flags|packet.TCPAck))
		checkEnds(t, back, vip.String(), "10.1.1.12:40000")
	}
}

// TestServiceOfItself is A-V8 for a pod that is its own endpoint. It sees the loopback address as
// the client and the Service's address as the server, and no policy applies.
func TestServiceOfItself(t *testing.T) {
	n := sample()
	s := programtest.New(t, Program, n)
	pod, vip := n.Pods[1], n.Services[0].Addr
	const own = "10.1.1.9:40000"
	for _, flags := range []uint16{packet.TCPSyn, packet.TCPAck} {
		in := s.Leaves(pod.Port, pod.Port, segment(pod, vip.Addr(), 40000, vip.Port(), flags))
		checkEnds(t, in, "10.1.1.254:40000", "10.1.1.9:8080")
		back := s.Leaves(pod.Port, pod.Port, segment(pod, netip.MustParseAddr("10.1.1.254"), 8080, 40000, flags|packet.TCPAck))
		checkEnds(t, back, vip.String(), own)
	}
	if table := s.Dropped(pod.Port, segment(pod, netip.MustParseAddr("10.1.1.254"), 8080, 1, packet.TCPSyn)); table != "ip4-lookup" {
		t.Errorf("the loopback address of nobody is dropped in %s", table)
	}
}

// TestLoopbackIsFree: a pod cannot have the loopback address, and endpoints need a range that has it.
func TestLoopbackIsFree(t *testing.T) {
	taken, none := sample(), sample()
	taken.Pods[0].IPs = []netip.Addr{netip.MustParseAddr("10.1.1.254")}
	taken.Policies, none.PodCIDR = nil, netip.Prefix{}
	for want, n := range map[string]*layout.Node{"tap11 has 10.1.1.254": taken, "there is no IPv4 pod range": none} {
		if _, err := build(n); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// checkEnds compares the ends of a TCP segment.
func checkEnds(t *testing.T, frame []byte, src, dst string) {
	t.Helper()
	l := packet.ParseLayers(frame)
	ip, tcp := packet.IPv4(frame[l.L3:]), packet.TCP(frame[l.L4:])
	got := [2]string{netip.AddrPortFrom(ip.Src(), tcp.SrcPort()).String(), netip.AddrPortFrom(ip.Dst(), tcp.DstPort()).String()}
	if got != [2]string{src, dst} {
		t.Errorf("%v, want %s and %s", got, src, dst)
	}
}

// mesh is a Node of many pods, all with one MAC address.
func mesh(pods int) *layout.Node {
	n := &layout.Node{PodCIDR: netip.MustParsePrefix("10.1.1.0/24")}
	for i := range pods {
		port := layout.Port{Name: fmt.Sprintf("tap%d", i), No: uint32(10 + i), MAC: podMAC}
		n.Pods = append(n.Pods, layout.NewPod(port, netip.AddrFrom4([4]byte{10, 1, 1, byte(10 + i)})))
	}
	return n
}

// TestOneMACAddress is A-V5 with ports in memory: each of 20 pods reaches each other one,
// although all have the same MAC address (V-01, V-05, V-08).
func TestOneMACAddress(t *testing.T) {
	n := mesh(20)
	s := programtest.New(t, Program, n)
	for _, a := range n.Pods {
		for _, b := range n.Pods {
			if a.Port.No == b.Port.No {
				continue
			}
			echo := packettest.ICMPEcho4(packettest.Options{EthSrc: a.Port.MAC, EthDst: a.Link, Src: a.IP(), Dst: b.IP(), ICMPID: 1})
			got := s.Leaves(a.Port, b.Port, echo)
			e := packet.Ethernet(got)
			if e.Dst() != podMAC || e.Src() != b.Link || packet.IPv4(got[packet.EthernetLen:]).TTL() != 63 {
				t.Fatalf("%s to %s: %x", a.Port.Name, b.Port.Name, got[:34])
			}
		}
	}
}

// TestNobodyAnswers is A-V6 and the switch's part of A-V1. The pods' next hop is not an address
// of the switch, and ARP leaves by no port (V-03, V-05).
func TestNobodyAnswers(t *testing.T) {
	n := sample()
	s := programtest.New(t, Program, n)
	a := n.Pods[0]
	ping := packettest.ICMPEcho4(packettest.Options{EthSrc: a.Port.MAC, EthDst: a.Link, Src: a.IP(), Dst: n.GatewayIP, ICMPID: 1})
	if table := s.Dropped(a.Port, ping); table != "ip4-lookup" {
		t.Errorf("an echo request to the next hop is dropped in %s", table)
	}
	asks := packettest.ARPRequest(packettest.Options{EthSrc: a.Port.MAC, EthDst: [6]byte{255, 255, 255, 255, 255, 255}, Src: a.IP(), Dst: n.GatewayIP})
	if table := s.Dropped(a.Port, asks); table != "acl-plugin-in-ip4-fa" {
		t.Errorf("ARP is dropped in %s", table)
	}
}

// TestForged: a pod sends by its own address, to its own link, although MAC addresses are equal.
func TestForged(t *testing.T) {
	n := sample()
	s := programtest.New(t, Program, n)
	a, b := n.Pods[0], n.Pods[1]
	forged := segment(b, a.IP(), 1, 2, packet.TCPSyn)
	if table := s.Dropped(a.Port, forged); table != "acl-plugin-in-ip4-fa" {
		t.Errorf("another pod's packet is dropped in %s", table)
	}
	wrongHop := segment(a, b.IP(), 1, 8080, packet.TCPSyn)
	copy(wrongHop, b.Link[:])
	if table := s.Dropped(a.Port, wrongHop); table != "acl-plugin-in-ip4-fa" {
		t.Errorf("a packet to another pod's link is dropped in %s", table)
	}
}

// TestLastHop: a packet with TTL 1 goes no further, as a router drops it.
func TestLastHop(t *testing.T) {
	n := mesh(2)
	s := programtest.New(t, Program, n)
	a, b := n.Pods[0], n.Pods[1]
	last := packettest.TCP4(packettest.Options{EthSrc: a.Port.MAC, EthDst: a.Link, Src: a.IP(), Dst: b.IP(), SrcPort: 1, DstPort: 2, TTL: 1})
	if table := s.Dropped(a.Port, last); table != "ip4-rewrite" {
		t.Errorf("dropped in %s", table)
	}
}

// TestWrongNodes: a Node that no switch can have is refused, and the error says why.
func TestWrongNodes(t *testing.T) {
	for want, n := range map[string]*layout.Node{
		"there is no pod":               {},
		"link of tap0 has no address":   {Pods: []layout.Pod{{Port: layout.Port{Name: "tap0", No: 1, MAC: podMAC}, IPs: []netip.Addr{netip.MustParseAddr("10.1.1.2")}}}},
		"pod tap0 has no IPv4 address":  {Pods: []layout.Pod{{Port: layout.Port{Name: "tap0", No: 1}, Link: podMAC}}},
		"policy of 10.1.1.99 is of no":  {Pods: mesh(1).Pods, Policies: []layout.Policy{{Pod: netip.MustParseAddr("10.1.1.99")}}},
		"tap0 and tap0 both have numbe": {Pods: slices.Concat(mesh(1).Pods, mesh(1).Pods)},
	} {
		if _, _, err := Program.Flow(n); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}

// TestEntriesDiffer: no two entries of a table have one priority and match, and each has a
// reason.
func TestEntriesDiffer(t *testing.T) {
	for _, n := range []*layout.Node{sample(), mesh(20)} {
		prog, origins, err := Program.Flow(n)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, e := range prog.Entries {
			key := fmt.Sprint(e.Table, e.Priority, e.Match.Text(nil))
			if seen[key] || origins[e].Row == "" {
				t.Errorf("twice, or for nothing: %s", key)
			}
			seen[key] = true
		}
	}
}
