package examples_test

import (
	"net/netip"
	"testing"

	"github.com/antrail/antrail/internal/walktest"
	"github.com/antrail/antrail/packet"
	pt "github.com/antrail/antrail/packet/packettest"
)

// Cases that the walks leave out: other protocols, errors about translated packets, ends
// of connections, frames that are not IPv4.

// step is one frame and the port where it must arrive: "" if nowhere, "*" if it is
// flooded.
type step struct {
	from, at string
	frame    []byte
}

// ipv4 builds a packet of an end to an address, sent to the MAC address that the
// end would use.
func ipv4(from, to string, build func(pt.Options) []byte, o pt.Options) []byte {
	h := (&lab{}).request(from, to+":1", 1)
	o.EthSrc, o.EthDst, o.Src, o.Dst = h.srcMAC, h.dstMAC, h.src.Addr(), h.dst.Addr()
	return build(o)
}

// unreachable builds the ICMP error "port unreachable" about a packet.
func unreachable(about []byte) func(pt.Options) []byte {
	return func(o pt.Options) []byte { return pt.ICMPError4(o, 3, 3, about, 8) }
}

// tcp builds a segment between two ends as it is where it is sent.
func tcp(from, to string, sport, dport, flags uint16, seq, ack uint32) []byte {
	return ipv4(from, to, pt.TCP4, pt.Options{SrcPort: sport, DstPort: dport, TCPFlags: flags, Seq: seq, Ack: ack})
}

const (
	clientA, clientB, webA = "10.10.0.26", "10.10.1.7", "10.10.0.24"
	webAOnly               = "10.96.0.24" // a Service

	syn, ack, fin, rst = packet.TCPSyn, packet.TCPAck, packet.TCPFin, packet.TCPRst
)

// broken returns the frame with its last byte changed.
func broken(b []byte) []byte { b[len(b)-1] ^= 1; return b }

// between builds a packet as its receiver sees it, for an error to be about it.
func between(src, dst string, build func(pt.Options) []byte, o pt.Options) []byte {
	o.Src, o.Dst = netip.MustParseAddr(src), netip.MustParseAddr(dst)
	return build(o)
}

var udpAcross = pt.Options{SrcPort: 5000, DstPort: 5001, Payload: []byte("hello")}

var stories = []struct {
	name string
	// differs is the number, as package conntrack has it, of the difference
	// from Open vSwitch that the last step shows; "" for none.
	differs string
	steps   []step
}{
	{"UDP across Nodes and back", "", []step{
		{"client-a", "client-b", ipv4("client-a", clientB, pt.UDP4, udpAcross)},
		{"client-b", "client-a", ipv4("client-b", clientA, pt.UDP4, pt.Options{SrcPort: 5001, DstPort: 5000})},
	}},
	{"error about a packet of another Node", "", []step{
		{"client-a", "client-b", ipv4("client-a", clientB, pt.UDP4, pt.Options{SrcPort: 5100, DstPort: 5001})},
		{"client-b", "client-a", ipv4("client-b", clientA, unreachable(between(clientA, clientB, pt.UDP4, pt.Options{SrcPort: 5100, DstPort: 5001})), pt.Options{})},
	}},
	{"error about nothing that was sent", "", []step{
		{"client-b", "", ipv4("client-b", clientA, unreachable(between(clientA, clientB, pt.UDP4, pt.Options{SrcPort: 5200, DstPort: 5001})), pt.Options{})},
	}},
	{"error about a packet to a Service", "", []step{
		{"client-a", "web-a", tcp("client-a", webAOnly, 5300, 80, syn, 1, 0)},
		{"web-a", "client-a", ipv4("web-a", clientA, unreachable(between(clientA, webA, pt.TCP4, pt.Options{SrcPort: 5300, DstPort: 80, Seq: 1})), pt.Options{})},
	}},
	{"error about a hairpin packet", "", []step{
		{"web-a", "web-a", tcp("web-a", webAOnly, 5400, 80, syn, 1, 0)},
		{"web-a", "web-a", ipv4("web-a", "10.10.0.1", unreachable(between("10.10.0.1", webA, pt.TCP4, pt.Options{SrcPort: 5400, DstPort: 80, Seq: 1})), pt.Options{})},
	}},
	{"a connection that ends, and its ports used again", "", []step{
		{"client-a", "web-a", tcp("client-a", webA, 5500, 80, syn, 1, 0)},
		{"web-a", "client-a", tcp("web-a", clientA, 80, 5500, syn|ack, 1, 2)},
		{"client-a", "web-a", tcp("client-a", webA, 5500, 80, ack, 2, 2)},
		{"client-a", "web-a", tcp("client-a", webA, 5500, 80, fin|ack, 2, 2)},
		{"web-a", "client-a", tcp("web-a", clientA, 80, 5500, fin|ack, 2, 3)},
		{"client-a", "web-a", tcp("client-a", webA, 5500, 80, ack, 3, 3)},
		{"client-a", "web-a", tcp("client-a", webA, 5500, 80, syn, 90000, 0)},
	}},
	{"a refused connection", "", []step{
		{"client-a", "web-a", tcp("client-a", webA, 5600, 80, syn, 1, 0)},
		{"web-a", "client-a", tcp("web-a", clientA, 80, 5600, rst|ack, 0, 2)},
		{"client-a", "web-a", tcp("client-a", webA, 5600, 80, syn, 7, 0)},
	}},
	{"an ACK of a connection unknown", "", []step{
		{"client-a", "web-a", tcp("client-a", webA, 5700, 80, ack, 5, 5)},
	}},
	{"a RST of a connection unknown", "D2", []step{
		{"client-a", "", tcp("client-a", webA, 5750, 80, rst, 5, 0)},
	}},
	{"a SYN outside the window of an established connection", "D5", []step{
		{"client-a", "web-a", tcp("client-a", webA, 5760, 80, syn, 1, 0)},
		{"web-a", "client-a", tcp("web-a", clientA, 80, 5760, syn|ack, 1, 2)},
		{"client-a", "web-a", tcp("client-a", webA, 5760, 80, ack, 2, 2)},
		{"client-a", "web-a", tcp("client-a", webA, 5760, 80, syn, 1<<30, 0)},
	}},
	{"data outside the window of an established connection", "D3", []step{
		{"client-a", "web-a", tcp("client-a", webA, 5770, 80, syn, 1, 0)},
		{"web-a", "client-a", tcp("web-a", clientA, 80, 5770, syn|ack, 1, 2)},
		{"client-a", "web-a", tcp("client-a", webA, 5770, 80, ack, 2, 2)},
		{"client-a", "web-a", ipv4("client-a", webA, pt.TCP4, pt.Options{SrcPort: 5770, TCPFlags: ack, Seq: 1 << 30, Ack: 2, Payload: []byte("late")})},
	}},
	{"a SYN and FIN", "", []step{
		{"client-a", "", tcp("client-a", webA, 5800, 80, syn|fin, 5, 0)},
	}},
	{"a wrong TCP checksum", "", []step{
		{"client-a", "", broken(tcp("client-a", webA, 5900, 80, syn, 5, 0))},
	}},
	{"SCTP to a client", "", []step{
		{"client-a", "client-b", ipv4("client-a", clientB, pt.SCTP4, pt.Options{SrcPort: 6000, DstPort: 6001})},
	}},
	{"an IP protocol without ports", "", []step{
		{"client-a", "client-b", ipv4("client-a", clientB, gre, pt.Options{})},
	}},
	{"a TTL of 1 and of 2", "", []step{
		{"client-a", "", ipv4("client-a", clientB, pt.UDP4, pt.Options{SrcPort: 6100, TTL: 1})},
		{"client-a", "", ipv4("client-a", clientB, pt.UDP4, pt.Options{SrcPort: 6101, TTL: 2})},
		{"client-a", "client-b", ipv4("client-a", clientB, pt.UDP4, pt.Options{SrcPort: 6102, TTL: 3})},
	}},
	{"no such pod", "", []step{
		{"client-a", "gw-a", ipv4("client-a", "10.10.0.99", pt.UDP4, pt.Options{SrcPort: 6200})},
		{"client-a", "", ipv4("client-a", "10.10.1.99", pt.UDP4, pt.Options{SrcPort: 6201})},
	}},
	{"broadcast and multicast", "", []step{
		{"client-a", "", toMAC("ff:ff:ff:ff:ff:ff", ipv4("client-a", "255.255.255.255", pt.UDP4, pt.Options{SrcPort: 68, DstPort: 67}))},
		{"client-a", "", toMAC("01:00:5e:00:00:fb", ipv4("client-a", "224.0.0.251", pt.UDP4, pt.Options{SrcPort: 5353, DstPort: 5353}))},
	}},
	{"IPv6", "", []step{{"client-a", "", pt.UDP6(pt.Options{EthSrc: mac(ends["client-a"].mac)})}}},
	{"a VLAN tag", "", []step{{"client-a", "client-b", ipv4("client-a", clientB, pt.UDP4, pt.Options{SrcPort: 6300, VLAN: 5})}}},
	{"ARP for the gateway, and the answer", "", []step{
		{"client-a", "*", ends["client-a"].asks("10.10.0.1")},
		{"gw-a", "client-a", ends["gw-a"].tells(ends["client-a"])},
		{"client-a", "client-a", ends["client-a"].asks("10.10.1.1")},
	}},
}

func toMAC(dst string, frame []byte) []byte {
	m := mac(dst)
	copy(frame, m[:])
	return frame
}

// gre builds a packet of protocol 47 out of a UDP datagram.
func gre(o pt.Options) []byte {
	b := pt.UDP4(o)
	ip := packet.IPv4(b[packet.ParseLayers(b).L3:])
	ip.SetProto(47)
	ip.UpdateChecksum()
	return b
}

func TestStories(t *testing.T) {
	lab := newLab(t, newOwnNode)
	for _, s := range stories {
		t.Run(s.name, func(t *testing.T) {
			for i, step := range s.steps {
				step.expect(t, i, lab.carry(t, ends[step.from], step.frame))
			}
		})
	}
}

// expect fails when the frame did not arrive where the step says.
func (s step) expect(t *testing.T, i int, out []sent) {
	t.Helper()
	at := ends[s.at]
	switch {
	case s.at == "" && len(out) == 0, s.at == "*" && len(out) > 1:
	case len(out) == 1 && out[0].node == at.node && out[0].port == at.port:
	default:
		t.Errorf("step %d: left %v, want it at %q", i, out, s.at)
	}
}

func TestStoriesAreTheSameAsOpenVSwitch(t *testing.T) {
	ovs, own := newLab(t, newOVSNode), newLab(t, newOwnNode)
	for _, s := range walktest.Some(stories) {
		t.Run(s.name, func(t *testing.T) {
			for i, step := range s.steps {
				want, got := carryBoth(t, ovs, own, ends[step.from], step.frame)
				if s.differs != "" && i == len(s.steps)-1 {
					expectDifference(t, s.differs, want, got)
				} else {
					expectSame(t, want, got)
				}
			}
		})
	}
}
