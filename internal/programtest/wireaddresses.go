package programtest

import (
	"net/netip"
	"testing"

	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
)

// Wire is the addresses of an IPv4 TCP or UDP frame.
type Wire struct {
	DstMAC           [6]byte
	Src, Dst         netip.Addr
	SrcPort, DstPort uint16
	TTL              uint8
}

// NewWire returns the addresses of a frame from one end to another.
func NewWire(dstMAC [6]byte, src, dst netip.Addr, srcPort, dstPort uint16, ttl uint8) Wire {
	return Wire{dstMAC, src, dst, srcPort, dstPort, ttl}
}

// WireOf reads the addresses of a frame.
func WireOf(t testing.TB, frame []byte) Wire {
	t.Helper()
	l := packet.ParseLayers(frame)
	if l.EtherType != packet.EtherTypeIPv4 {
		t.Fatalf("no IPv4 packet: %x", frame)
	}
	ip, tcp := packet.IPv4(frame[l.L3:]), packet.TCP(frame[l.L4:])
	return NewWire(packet.Ethernet(frame).Dst(), ip.Src(), ip.Dst(), tcp.SrcPort(), tcp.DstPort(), ip.TTL())
}

// CheckWire compares the addresses of a frame.
func CheckWire(t testing.TB, what string, frame []byte, want Wire) {
	t.Helper()
	if got := WireOf(t, frame); got != want {
		t.Errorf("%s: %+v, want %+v", what, got, want)
	}
}

// Segment is a TCP segment between two ends.
func Segment(srcMAC, dstMAC [6]byte, src, dst netip.Addr, srcPort, dstPort uint16, flags uint16) []byte {
	return packettest.TCP4(packettest.Options{
		EthSrc: srcMAC, EthDst: dstMAC, Src: src, Dst: dst, SrcPort: srcPort, DstPort: dstPort, TCPFlags: flags, Seq: 100, Ack: 100, Window: 1000,
	})
}
