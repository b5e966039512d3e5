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

// The walks. Each begins with a packet of a connection; answers go back from
// where it came to. They happen one after the other on the same two Nodes.

// walk is a page of the book.
type walk struct {
	file, title, text string
	packets           []sent
}

// sent is a packet of a walk, and the port of a Node where it leaves, unless it
// is gone: dropped. Of several ports, with commas between them, the first one's end
// answers. Only a first packet says who sends it, and a TCP SYN to which address and
// port, from which port; any other is described as a match does.
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

// kind is whether a packet begins a connection, is the answer to the packet
// before, or goes on with the connection in the first direction.
type kind uint8

const (
	first kind = iota
	answering
	further
)

// end is who sends.
type end struct{ node, port, mac, next, addr string }

// The ends of the sample cluster. next is the MAC that they send to what is not
// on their own Node.
var (
	clientA = &end{"node-a", "client-a", "5e:b5:e3:a6:90:b7", "ba:5e:d1:55:aa:c0", "10.10.0.26"}
	clientB = &end{"node-b", "client-b", "5e:b5:e3:a6:91:b7", "ba:5e:d1:55:ab:c0", "10.10.1.7"}
	dbA     = &end{"node-a", "db-a", "36:48:21:a2:9d:b4", "ba:5e:d1:55:aa:c0", "10.10.0.25"}
	webB    = &end{"node-b", "web-b", "fa:b7:53:74:22:a6", "ba:5e:d1:55:ab:c0", "10.10.1.6"}
	// outside is a host beyond node-b: its packets come in by the gateway, from the
	// Node's kernel, which sends them to the Global Virtual MAC.
	outside = &end{"node-b", "antrea-gw0", "ba:5e:d1:55:ab:c0", "aa:bb:cc:dd:ee:ff", "192.168.77.1"}
)

// onLink are the MAC addresses of Pods that ends send to directly.
var onLink = map[string]string{"10.10.0.24": "fa:b7:53:74:21:a6", "10.10.0.26": "5e:b5:e3:a6:90:b7", "10.10.1.6": "fa:b7:53:74:22:a6", "10.10.1.8": "36:48:21:a2:9e:b4"}

// wires lead what leaves by one port back in by another, as a firewall and an engine
// that let everything pass.
var wires = map[string]string{"antrea-tc-tap0": "antrea-tc-tap1", "antrea-l7-tap0": "antrea-l7-tap1"}

var walks = []walk{
	{"pod-to-pod", "Pod to Pod on one Node", `The simplest way: client-b asks web-b, and both are Pods of node-b. No Service is asked for, so the Service
tables find nothing; the policies of web-b let clients in at port 80; the destination's MAC address gives the port.`, []sent{
		{text: "client-b opens a connection to web-b.", from: clientB, to: "10.10.1.6:80", port: 40001, leavesOn: "node-b", at: "web-b"},
		{text: "web-b answers. Conntrack knows the connection, so policies are asked no more.", kind: answering, leavesOn: "node-b", at: "client-b"},
		{text: "client-b goes on. The connection is established now.", kind: further, leavesOn: "node-b", at: "web-b"},
	}},
	{"pod-to-service", "Pod to a Service", `client-b asks the ClusterIP of sample-clusterip. ServiceLB finds the Service and asks a group, which chooses an endpoint
and notes it in registers; EndpointDNAT commits the connection with the translation to it. From there on the packet is one to a Pod.`, []sent{
		{text: "client-b opens a connection to 10.105.31.235.", from: clientB, to: "10.105.31.235:80", port: 40012, leavesOn: "node-b", at: "web-b"},
		{text: "The endpoint answers, and conntrack puts the Service's address back: client-b never sees another.", kind: answering, leavesOn: "node-b", at: "client-b"},
	}},
	{"across-nodes", "Across Nodes", `client-a asks client-b, which is on the other Node. L3Forwarding of node-a finds node-b behind the destination and sets the
outer destination; the packet leaves by the tunnel port and goes on in the switch of node-b.`, []sent{
		{text: "client-a opens a connection to client-b.", from: clientA, to: "10.10.1.7:8080", port: 40003, leavesOn: "node-b", at: "client-b"},
		{text: "client-b answers.", kind: answering, leavesOn: "node-a", at: "client-a"},
	}},
	{"hairpin", "Hairpin: a Pod asks a Service that it serves itself", `web-b asks a Service whose only endpoint is web-b. A packet that came back with web-b's own address as its source would be
taken for spoofed. So the source is translated too, and Output sends the packet out where it came in.`, []sent{
		{text: "web-b opens a connection to 10.96.1.6.", from: webB, to: "10.96.1.6:80", port: 40004, leavesOn: "node-b", at: "web-b"},
		{text: "web-b answers what it takes for its gateway.", kind: answering, leavesOn: "node-b", at: "web-b"},
	}},
	{"nodeport", "NodePort from outside", `A host outside asks port 30004 of node-b. The Node's own nftables rules have sent the packet to the virtual address
169.254.0.252 and so to the gateway, where it enters the switch as any other. NodePortMark tells that it is for a NodePort.`, []sent{
		{text: "The outside host opens a connection to node-b's port 30004.", from: outside, to: "169.254.0.252:30004", port: 40005, leavesOn: "node-b", at: "web-b"},
		{text: "web-b answers.", kind: answering, leavesOn: "node-b", at: "antrea-gw0"},
	}},
	{"egress", "Egress: a Pod asks the outside", `client-a asks a host outside the cluster. The Egress egress-client says that clients leave by 192.168.77.113, which node-b holds.
EgressMark of node-a sends the packet through the tunnel. EgressMark of node-b gives it the mark by which node-b's kernel knows what to translate to.`, []sent{
		{text: "client-a opens a connection to 192.168.77.1.", from: clientA, to: "192.168.77.1:80", port: 40006, leavesOn: "node-b", at: "antrea-gw0"},
		{text: "The answer, as node-b's kernel gives it back.", kind: answering, leavesOn: "node-a", at: "client-a"},
	}},
	{"denied", "Denied by policy", `Two ways of being denied. A Kubernetes NetworkPolicy isolates the Pods that it selects: what no rule allows is dropped by
IngressDefaultRule. A rule of an Antrea policy denies by itself: the packet is marked, and dropped and counted in IngressMetric.`, []sent{
		{text: "client-b asks db-b, which only web Pods may.", from: clientB, to: "10.10.1.8:3306", port: 40007, gone: true, leavesOn: "node-b"},
		{text: "client-b asks web-b at a port that no rule allows.", from: clientB, to: "10.10.1.6:22", port: 40008, gone: true, leavesOn: "node-b"},
	}},
	{"traffic-control", "TrafficControl: a detour, and a copy", `A TrafficControl redirects web-a: what it gets and sends goes out at antrea-tc-tap0 and is taken
back at antrea-tc-tap1. Between the two sits a program that looks at it; here a wire takes its place. Each packet has two walks, and the second is
short: what comes from the return port was judged and counted before. Another TrafficControl mirrors db-a: what it sends leaves twice.`, []sent{
		{text: "client-a opens a connection to web-a, and the packet makes a detour.", from: clientA, to: "10.10.0.24:80", port: 40009, leavesOn: "node-a", at: "web-a"},
		{text: "The answer takes the same detour.", kind: answering, leavesOn: "node-a", at: "client-a"},
		{text: "db-a opens a connection to client-a, and a copy goes out at antrea-tc-tap2.", from: dbA, to: "10.10.0.26:9000", port: 40010, leavesOn: "node-a", at: "client-a,antrea-tc-tap2"},
	}},
	{"layer-7", "Layer 7: an engine reads the connection", `The rule AllowFromClientL7 lets clients ask web Pods at TCP 8080, if what they ask is a GET for /api/v2/. A switch
cannot read that. The rule's entry commits the connection with a mark and a number. Output sends what has the mark to an engine's port, in a VLAN of
that number. What comes back from the engine takes the short way. The engine is a wire here. A TrafficControl redirects web-a too, and is not heard:
Output's entry for the engine has the higher priority.`, []sent{
		{text: "client-a opens a connection to web-a at 8080. The rule's entry marks it.", from: clientA, to: "10.10.0.24:8080", port: 40011, leavesOn: "node-a", at: "web-a"},
		{text: "The answer meets no rule any more; the mark is the connection's, so the engine reads this too.", kind: answering, leavesOn: "node-a", at: "client-a"},
	}},
	{"ipv6", "IPv6: neighbours, and UDP across Nodes", `IPv6 has no ARP: neighbours find each other by ICMPv6, which SpoofGuard and IPv6 guard. A datagram to the other Node goes the way
of IPv4's, with a conntrack zone of its own; the tunnel that carries it goes over IPv4. Conntrack knows UDP by its ends alone: the answer makes the connection one
that is established.`, []sent{
		{text: "client-b asks who has web-b's address, by multicast.", from: clientB, leavesOn: "node-b", at: "web-b,antrea-gw0,db-b",
			flow: "icmp6,dl_src=5e:b5:e3:a6:91:b7,dl_dst=33:33:ff:00:00:06,ipv6_src=fd00:10:10:1::7,ipv6_dst=ff02::1:ff00:6,icmp_type=135,icmp_code=0,nd_target=fd00:10:10:1::6,nd_sll=5e:b5:e3:a6:91:b7"},
		{text: "web-b says that it has it.", from: webB, leavesOn: "node-b", at: "client-b",
			flow: "icmp6,dl_src=fa:b7:53:74:22:a6,dl_dst=5e:b5:e3:a6:91:b7,ipv6_src=fd00:10:10:1::6,ipv6_dst=fd00:10:10:1::7,icmp_type=136,icmp_code=0,nd_target=fd00:10:10:1::6,nd_tll=fa:b7:53:74:22:a6"},
		{text: "client-b says that web-b's address is its own, which is not true.", from: clientB, gone: true, leavesOn: "node-b",
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

// arrives is where among the frames that left the one is that the page follows: at the
// first of the ports that it says. The error is for frames that left elsewhere.
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
		return answer.Leaving{}, fmt.Errorf("leaves by %q, and should by %q", got, want)
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
