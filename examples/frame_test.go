package examples_test

import (
	"fmt"
	"net"
	"net/netip"
	"testing"

	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
)

// header is what the walks ask of an IPv4 frame: TCP, or an echo, whose identifier
// stands as the port of the side that asked; the other port is 0.
type header struct {
	dstMAC, srcMAC [6]byte
	ttl, proto     byte
	src, dst       netip.AddrPort
	answer         bool // SYN and ACK, or the echo reply
	further        bool // ACK alone
}

func (h header) String() string {
	return fmt.Sprintf("%v > %v, proto %d, ttl %d, %x > %x", h.src, h.dst, h.proto, h.ttl, h.srcMAC, h.dstMAC)
}

// bytes builds the frame. Both sides of a TCP connection begin at number 1000.
func (h header) bytes() []byte {
	o := packettest.Options{EthSrc: h.srcMAC, EthDst: h.dstMAC, Src: h.src.Addr(), Dst: h.dst.Addr(), TTL: h.ttl}
	if h.proto == packet.ProtoICMP {
		o.ICMPID, o.Reply = h.src.Port()|h.dst.Port(), h.answer
		return packettest.ICMPEcho4(o)
	}
	o.SrcPort, o.DstPort, o.Seq, o.TCPFlags = h.src.Port(), h.dst.Port(), 1000, packet.TCPSyn
	switch {
	case h.answer:
		o.TCPFlags, o.Ack = packet.TCPSyn|packet.TCPAck, 1001
	case h.further:
		o.TCPFlags, o.Seq, o.Ack = packet.TCPAck, 1001, 1001
	}
	return packettest.TCP4(o)
}

// back is the answer to h.
func (h header) back() header {
	return header{dstMAC: h.srcMAC, srcMAC: h.dstMAC, ttl: 64, proto: h.proto, src: h.dst, dst: h.src, answer: true}
}

func isIPv4(frame []byte) bool { return packet.ParseLayers(frame).EtherType == packet.EtherTypeIPv4 }

// readHeader reads addresses and ports of what bytes built and a switch changed;
// a wrong checksum fails the test.
func readHeader(t *testing.T, b []byte) header {
	t.Helper()
	l := packet.ParseLayers(b)
	if l.EtherType != packet.EtherTypeIPv4 || l.L4 == 0 || !packet.IPv4(b[l.L3:]).ChecksumValid() || !l.L4Valid(b) {
		t.Fatalf("not a sound IPv4 frame: %x", b)
	}
	ip := packet.IPv4(b[l.L3:])
	sport, dport := ports(&l, b[l.L4:])
	return header{
		dstMAC: packet.Ethernet(b).Dst(), srcMAC: packet.Ethernet(b).Src(), ttl: ip.TTL(), proto: ip.Proto(),
		src: netip.AddrPortFrom(ip.Src(), sport), dst: netip.AddrPortFrom(ip.Dst(), dport),
	}
}

func ports(l *packet.Layers, l4 []byte) (src, dst uint16) {
	if l.Proto == packet.ProtoTCP {
		return packet.TCP(l4).SrcPort(), packet.TCP(l4).DstPort()
	}
	if packet.ICMP(l4).Type() == packet.ICMPEchoReply {
		return 0, packet.ICMP(l4).ID()
	}
	return packet.ICMP(l4).ID(), 0
}

// asks is the ARP request of e for an address.
func (e end) asks(addr string) []byte {
	return packettest.ARPRequest(packettest.Options{
		EthSrc: mac(e.mac), EthDst: mac("ff:ff:ff:ff:ff:ff"),
		Src: netip.MustParseAddr(e.addr), Dst: netip.MustParseAddr(addr),
	})
}

// tells is the ARP reply of e to another end.
func (e end) tells(to end) []byte {
	return packettest.ARPRequest(packettest.Options{
		EthSrc: mac(e.mac), EthDst: mac(to.mac), Reply: true,
		Src: netip.MustParseAddr(e.addr), Dst: netip.MustParseAddr(to.addr),
	})
}

func mac(s string) [6]byte {
	m, err := net.ParseMAC(s)
	if err != nil {
		panic(err)
	}
	return [6]byte(m)
}
