package main

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/antrail/antrail/agent/answer"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
)

// The walks. Each begins with a packet of a connection; answers go back from the port where it
// arrived. They happen one after the other on the same two Nodes.

// walk is a page of the book.
type walk struct {
	file, title, text string
	packets           []sent
}

// sent is a packet of a walk, and the port of a Node where it leaves. If gone is true, it is
// dropped. If several ports are given, with commas, the first one's end answers. A first packet
// has a sender. A TCP SYN also has an address, a port and a source port. Other packets are given
// by a match.
type sent struct {
	text         string
	kind         kind
	from         *end
	to           string
	port         uint16
	flow         string
	gone         bool
	leavesOn, at string
}

// kind says whether a packet begins a connection, answers the previous packet, or continues in
// the first direction.
type kind uint8

const (
	first kind = iota
	answering
	further
)

// end is a sender.
type end struct{ node, port, mac, next, addr string }

// The ends of the sample cluster. next is the MAC of their gateway, for destinations off their
// own Node.
var (
	clientA = &end{"node-a", "client-a", "5e:b5:e3:a6:90:b7", "ba:5e:d1:55:aa:c0", "10.10.0.26"}
	clientB = &end{"node-b", "client-b", "5e:b5:e3:a6:91:b7", "ba:5e:d1:55:ab:c0", "10.10.1.7"}
	dbA     = &end{"node-a", "db-a", "36:48:21:a2:9d:b4", "ba:5e:d1:55:aa:c0", "10.10.0.25"}
	webB    = &end{"node-b", "web-b", "fa:b7:53:74:22:a6", "ba:5e:d1:55:ab:c0", "10.10.1.6"}
	// outside is a host beyond node-b. Its packets come in by the gateway, from the Node's
	// kernel, which sends them to the Global Virtual MAC.
	outside = &end{"node-b", "antrea-gw0", "ba:5e:d1:55:ab:c0", "aa:bb:cc:dd:ee:ff", "192.168.77.1"}
)

// onLink are the MAC addresses of Pods that ends reach directly.
var onLink = map[string]string{"10.10.0.24": "fa:b7:53:74:21:a6", "10.10.0.26": "5e:b5:e3:a6:90:b7", "10.10.1.6": "fa:b7:53:74:22:a6", "10.10.1.8": "36:48:21:a2:9e:b4"}

// wires connect an output port to an input port, like a firewall or an engine that passes
// everything.
var wires = map[string]string{"antrea-tc-tap0": "antrea-tc-tap1", "antrea-l7-tap0": "antrea-l7-tap1"}

var walks = []walk{
	{"pod-to-pod", "Pod to Pod on one Node", `The simplest case: client-b connects to web-b, and both are Pods of node-b. No Service is involved, so the Service
tables find nothing. The policies of web-b allow clients at port 80. The destination's MAC address gives the port.`, []sent{
		{text: "client-b opens a connection to web-b.", from: clientB, to: "10.10.1.6:80", port: 40001, leavesOn: "node-b", at: "web-b"},
		{text: "web-b answers. Conntrack knows the connection, so the answer skips the policies.", kind: answering, leavesOn: "node-b", at: "client-b"},
		{text: "client-b sends more. The connection is established now.", kind: further, leavesOn: "node-b", at: "web-b"},
	}},
	{"pod-to-service", "Pod to a Service", `client-b connects to the ClusterIP of sample-clusterip. ServiceLB finds the Service and its group. The group chooses an
endpoint and writes it into registers. EndpointDNAT commits the connection with the translation. From there on the packet goes to a Pod.`, []sent{
		{text: "client-b opens a connection to 10.105.31.235.", from: clientB, to: "10.105.31.235:80", port: 40012, leavesOn: "node-b", at: "web-b"},
		{text: "The endpoint answers, and conntrack restores the Service's address: client-b sees no other.", kind: answering, leavesOn: "node-b", at: "client-b"},
	}},
	{"across-nodes", "Across Nodes", `client-a connects to client-b, which is on the other Node. L3Forwarding of node-a finds that the destination is on node-b
and sets the outer destination. The packet leaves by the tunnel port and enters the switch of node-b.`, []sent{
		{text: "client-a opens a connection to client-b.", from: clientA, to: "10.10.1.7:8080", port: 40003, leavesOn: "node-b", at: "client-b"},
		{text: "client-b answers.", kind: answering, leavesOn: "node-a", at: "client-a"},
	}},
	{"hairpin", "Hairpin: a Pod asks a Service that it serves itself", `web-b connects to a Service whose only endpoint is web-b. web-b would drop a packet with its own address as the source. So
the source is translated too, and Output sends the packet back to the port that it came from.`, []sent{
		{text: "web-b opens a connection to 10.96.1.6.", from: webB, to: "10.96.1.6:80", port: 40004, leavesOn: "node-b", at: "web-b"},
		{text: "web-b answers to the gateway's address.", kind: answering, leavesOn: "node-b", at: "web-b"},
	}},
	{"nodeport", "NodePort from outside", `A host outside connects to port 30004 of node-b. The Node's nftables rules translate the destination to the virtual
address 169.254.0.252. So the packet goes to the gateway and enters the switch there. NodePortMark marks it as a packet to a NodePort.`, []sent{
		{text: "The outside host opens a connection to node-b's port 30004.", from: outside, to: "169.254.0.252:30004", port: 40005, leavesOn: "node-b", at: "web-b"},
		{text: "web-b answers.", kind: answering, leavesOn: "node-b", at: "antrea-gw0"},
	}},
	{"egress", "Egress: a Pod asks the outside", `client-a connects to a host outside the cluster. By the Egress egress-client, clients leave with 192.168.77.113, an address of node-b.
EgressMark of node-a sends the packet through the tunnel. EgressMark of node-b sets a mark, by which node-b's kernel chooses the source address.`, []sent{
		{text: "client-a opens a connection to 192.168.77.1.", from: clientA, to: "192.168.77.1:80", port: 40006, leavesOn: "node-b", at: "antrea-gw0"},
		{text: "The answer, from node-b's kernel.", kind: answering, leavesOn: "node-a", at: "client-a"},
	}},
	{"denied", "Denied by policy", `Policies deny in two ways. A Kubernetes NetworkPolicy isolates the Pods that it selects: IngressDefaultRule drops packets that
no rule allows. A rule of an Antrea policy denies by itself: it marks the packet, and IngressMetric counts and drops it.`, []sent{
		{text: "client-b connects to db-b, which only web Pods may.", from: clientB, to: "10.10.1.8:3306", port: 40007, gone: true, leavesOn: "node-b"},
		{text: "client-b connects to web-b at a port that no rule allows.", from: clientB, to: "10.10.1.6:22", port: 40008, gone: true, leavesOn: "node-b"},
	}},
	{"traffic-control", "TrafficControl: a detour, and a copy", `A TrafficControl redirects web-a: its packets, both ways, go out at antrea-tc-tap0 and come back
at antrea-tc-tap1. A program between the two inspects them; here it is a wire. Each packet has two walks. The second one is short, because the first
has applied the policies and counted the packet. Another TrafficControl mirrors db-a: each of its packets leaves twice.`, []sent{
		{text: "client-a opens a connection to web-a, and the packet makes a detour.", from: clientA, to: "10.10.0.24:80", port: 40009, leavesOn: "node-a", at: "web-a"},
		{text: "The answer takes the same detour.", kind: answering, leavesOn: "node-a", at: "client-a"},
		{text: "db-a opens a connection to client-a, and a copy goes out at antrea-tc-tap2.", from: dbA, to: "10.10.0.26:9000", port: 40010, leavesOn: "node-a", at: "client-a,antrea-tc-tap2"},
	}},
	{"layer-7", "Layer 7: an engine reads the connection", `The rule AllowFromClientL7 allows clients to send GET requests for /api/v2/ to web Pods at TCP 8080. A switch cannot
read requests. The rule's entry commits the connection with a mark and a number. Output sends packets with the mark to an engine's port, in a VLAN of
that number. Packets from the engine have a short walk. The engine is a wire here. A TrafficControl redirects web-a too, without effect:
Output's entry for the engine has the higher priority.`, []sent{
		{text: "client-a opens a connection to web-a at 8080. The rule's entry marks it.", from: clientA, to: "10.10.0.24:8080", port: 40011, leavesOn: "node-a", at: "web-a"},
		{text: "The answer skips the rules. The connection has the mark, so the engine also reads the answer.", kind: answering, leavesOn: "node-a", at: "client-a"},
	}},
	{"ipv6", "IPv6: neighbours, and UDP across Nodes", `IPv6 has no ARP: neighbours find each other by ICMPv6, which SpoofGuard and IPv6 check. A datagram to the other Node goes the
same way as with IPv4, with a conntrack zone of its own. The tunnel goes over IPv4. For UDP, the first answer makes a connection established.`, []sent{
		{text: "client-b asks for the MAC of web-b's address, by multicast.", from: clientB, leavesOn: "node-b", at: "web-b,antrea-gw0,db-b",
			flow: "icmp6,dl_src=5e:b5:e3:a6:91:b7,dl_dst=33:33:ff:00:00:06,ipv6_src=fd00:10:10:1::7,ipv6_dst=ff02::1:ff00:6,icmp_type=135,icmp_code=0,nd_target=fd00:10:10:1::6,nd_sll=5e:b5:e3:a6:91:b7"},
		{text: "web-b answers with its MAC.", from: webB, leavesOn: "node-b", at: "client-b",
			flow: "icmp6,dl_src=fa:b7:53:74:22:a6,dl_dst=5e:b5:e3:a6:91:b7,ipv6_src=fd00:10:10:1::6,ipv6_dst=fd00:10:10:1::7,icmp_type=136,icmp_code=0,nd_target=fd00:10:10:1::6,nd_tll=fa:b7:53:74:22:a6"},
		{text: "client-b claims web-b's address, and the packet is dropped.", from: clientB, gone: true, leavesOn: "node-b",
			flow: "icmp6,dl_src=5e:b5:e3:a6:91:b7,dl_dst=36:48:21:a2:9e:b4,ipv6_src=fd00:10:10:1::7,ipv6_dst=fd00:10:10:1::8,icmp_type=136,icmp_code=0,nd_target=fd00:10:10:1::6,nd_tll=5e:b5:e3:a6:91:b7"},
		{text: "client-b sends a datagram to client-a.", from: clientB, leavesOn: "node-a", at: "client-a",
			flow: "udp6,dl_src=5e:b5:e3:a6:91:b7,dl_dst=ba:5e:d1:55:ab:c0,ipv6_src=fd00:10:10:1::7,ipv6_dst=fd00:10:10::26,tp_dst=5353"},
		{text: "client-a answers.", kind: answering, leavesOn: "node-b", at: "client-b"},
	}},
}

// frame builds a first packet.
func (s *sent) frame() ([]byte, error) {
	if s.flow != "" {
		m, err := parse.Match(s.flow, nil)
		if err != nil {
			return nil, err
		}
		flow.AssumeFirst(&m)
		return flow.Compose(&m.Value), nil
	}
	dst := netip.MustParseAddrPort(s.to)
	next := s.from.next
	if mac := onLink[dst.Addr().String()]; mac != "" {
		next = mac
	}
	return packettest.TCP4(packettest.Options{
		EthSrc: mac(s.from.mac), EthDst: mac(next), Src: netip.MustParseAddr(s.from.addr), Dst: dst.Addr(),
		SrcPort: s.port, DstPort: dst.Port(), TCPFlags: packet.TCPSyn, Seq: 1000,
	}), nil
}

// arrives finds the frame that the page follows, at the first of the named ports. It is an error
// if the frames left elsewhere.
func (s *sent) arrives(left []answer.Leaving) (answer.Leaving, error) {
	var want []string
	if !s.gone {
		for _, port := range strings.Split(s.at, ",") {
			want = append(want, s.leavesOn+" "+port)
		}
	}
	var got []string
	for _, l := range left {
		got = append(got, l.Node+" "+l.Port)
	}
	if !slices.Equal(slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(got))) {
		return answer.Leaving{}, fmt.Errorf("leaves by %q, want %q", got, want)
	}
	if s.gone {
		return answer.Leaving{}, nil
	}
	return left[slices.Index(got, want[0])], nil
}

func mac(text string) [6]byte {
	m, err := net.ParseMAC(text)
	if err != nil {
		panic(err) // a constant of this file
	}
	return [6]byte(m)
}
