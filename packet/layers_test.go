package packet_test

import (
	"testing"

	"github.com/antrail/antrail/packet"
	pt "github.com/antrail/antrail/packet/packettest"
)

// splice is b with n bytes at off replaced by mid.
func splice(b []byte, off, n int, mid ...byte) []byte {
	out := append([]byte{}, b[:off]...)
	out = append(out, mid...)
	return append(out, b[off+n:]...)
}

// poke is a copy of b with one byte set.
func poke(b []byte, off int, v byte) []byte { return splice(b, off, 1, v) }

// ext6 inserts extension headers between the IPv6 header of frame b and its
// payload. The last one's next header must already be right.
func ext6(b []byte, next byte, ext ...byte) []byte {
	const l3 = packet.EthernetLen
	b = splice(b, l3+packet.IPv6Len, 0, ext...)
	h := packet.IPv6(b[l3:])
	h.SetPayloadLen(h.PayloadLen() + uint16(len(ext)))
	h.SetNextHeader(next)
	return b
}

func TestParseLayers(t *testing.T) {
	tcp4, udp6 := pt.TCP4(pt.Options{}), pt.UDP6(pt.Options{Payload: []byte("0123")})
	hop := []byte{17, 0, 1, 4, 0, 0, 0, 0}
	frag := func(off byte) []byte { return []byte{17, 0, 0, off, 0, 0, 0, 9} }
	tests := []struct {
		name string
		b    []byte
		want packet.Layers
	}{
		{"short", tcp4[:13], packet.Layers{}},
		{"tcp4", tcp4, packet.Layers{EtherType: 0x800, L3: 14, L4: 34, End: 54, Proto: 6}},
		{"padded", append(append([]byte{}, tcp4...), 0, 0, 0, 0, 0, 0), packet.Layers{EtherType: 0x800, L3: 14, L4: 34, End: 54, Proto: 6}},
		{"options", pt.TCP4(pt.Options{IPOptions: make([]byte, 8)}), packet.Layers{EtherType: 0x800, L3: 14, L4: 42, End: 62, Proto: 6}},
		{"vlan", pt.UDP4(pt.Options{VLAN: 0x6005}), packet.Layers{EtherType: 0x800, TCI: 0x7005, L3: 18, L4: 38, End: 46, Proto: 17}},
		{"vlan 0", splice(tcp4, 12, 0, 0x81, 0, 0, 0), packet.Layers{EtherType: 0x800, TCI: 0x1000, L3: 18, L4: 38, End: 58, Proto: 6}},
		{"two tags", splice(tcp4, 12, 0, 0x88, 0xa8, 0, 7, 0x81, 0, 0, 8), packet.Layers{EtherType: 0x8100, TCI: 0x1007}},
		{"three tags", splice(tcp4, 12, 0, 0x88, 0xa8, 0, 7, 0x81, 0, 0, 8, 0x81, 0, 0, 9), packet.Layers{EtherType: 0x8100, TCI: 0x1007}},
		{"tag cut short", splice(tcp4, 12, 0, 0x81, 0, 0, 7)[:17], packet.Layers{EtherType: 0x8100}},
		{"802.3", splice(tcp4, 12, 2, 0, 40), packet.Layers{EtherType: packet.EtherTypeLLC}},
		{"snap", splice(tcp4, 12, 2, 0, 48, 0xaa, 0xaa, 3, 0, 0, 0, 8, 0), packet.Layers{EtherType: 0x800, L3: 22, L4: 42, End: 62, Proto: 6}},
		{"snap of another organisation", splice(tcp4, 12, 2, 0, 48, 0xaa, 0xaa, 3, 0, 0, 1, 8, 0), packet.Layers{EtherType: packet.EtherTypeLLC}},
		{"ipv4 cut short", tcp4[:33], packet.Layers{EtherType: 0x800}},
		{"total length beyond frame", poke(tcp4, 17, 41), packet.Layers{EtherType: 0x800, L3: 14}},
		{"total length below header", poke(tcp4, 17, 19), packet.Layers{EtherType: 0x800, L3: 14}},
		{"ihl 4", poke(tcp4, 14, 0x44), packet.Layers{EtherType: 0x800, L3: 14}},
		{"version 5", poke(tcp4, 14, 0x55), packet.Layers{EtherType: 0x800, L3: 14}},
		{"header only", poke(tcp4, 17, 20), packet.Layers{EtherType: 0x800, L3: 14, End: 34, Proto: 6}},
		{"tcp cut short", poke(tcp4, 17, 39), packet.Layers{EtherType: 0x800, L3: 14, End: 53, Proto: 6}},
		{"data offset 4", poke(tcp4, 46, 0x40), packet.Layers{EtherType: 0x800, L3: 14, End: 54, Proto: 6}},
		{"data offset 6", poke(tcp4, 46, 0x60), packet.Layers{EtherType: 0x800, L3: 14, End: 54, Proto: 6}},
		{"first fragment", pt.TCP4(pt.Options{FlagsOffset: 0x2000}), packet.Layers{EtherType: 0x800, L3: 14, L4: 34, End: 54, Proto: 6, Frag: 1}},
		{"later fragment", pt.TCP4(pt.Options{FlagsOffset: 0x2001}), packet.Layers{EtherType: 0x800, L3: 14, End: 54, Proto: 6, Frag: 3}},
		{"last fragment", pt.TCP4(pt.Options{FlagsOffset: 5}), packet.Layers{EtherType: 0x800, L3: 14, End: 54, Proto: 6, Frag: 3}},
		{"other protocol", poke(tcp4, 23, 47), packet.Layers{EtherType: 0x800, L3: 14, L4: 34, End: 54, Proto: 47}},
		{"sctp", pt.SCTP4(pt.Options{}), packet.Layers{EtherType: 0x800, L3: 14, L4: 34, End: 66, Proto: 132}},
		{"icmp", pt.ICMPEcho4(pt.Options{}), packet.Layers{EtherType: 0x800, L3: 14, L4: 34, End: 42, Proto: 1}},
		{"arp", pt.ARPRequest(pt.Options{}), packet.Layers{EtherType: 0x806, L3: 14, End: 42}},
		{"arp for another protocol", poke(pt.ARPRequest(pt.Options{}), 16, 9), packet.Layers{EtherType: 0x806}},
		{"udp6", udp6, packet.Layers{EtherType: 0x86dd, L3: 14, L4: 54, End: 66, Proto: 17}},
		{"ipv6 cut short", udp6[:53], packet.Layers{EtherType: 0x86dd}},
		{"payload length beyond frame", poke(udp6, 19, 13), packet.Layers{EtherType: 0x86dd, L3: 14}},
		{"ipv6 version 4", poke(udp6, 14, 0x40), packet.Layers{EtherType: 0x86dd, L3: 14}},
		{"hop-by-hop", ext6(udp6, 0, hop...), packet.Layers{EtherType: 0x86dd, L3: 14, L4: 62, End: 74, Proto: 17}},
		{"ah", ext6(udp6, 51, 17, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2), packet.Layers{EtherType: 0x86dd, L3: 14, L4: 66, End: 78, Proto: 17}},
		{"atomic fragment", ext6(udp6, 44, frag(0)...), packet.Layers{EtherType: 0x86dd, L3: 14, L4: 62, End: 74, Proto: 17}},
		{"first fragment 6", ext6(udp6, 44, frag(1)...), packet.Layers{EtherType: 0x86dd, L3: 14, L4: 62, End: 74, Proto: 17, Frag: 1}},
		{"later fragment 6", ext6(udp6, 44, frag(8)...), packet.Layers{EtherType: 0x86dd, L3: 14, End: 74, Proto: 44, Frag: 3}},
		{"extension beyond packet", ext6(udp6, 0, poke(hop, 1, 2)...), packet.Layers{EtherType: 0x86dd, L3: 14, End: 74}},
		{"only an extension", ext6(udp6[:54], 0, hop...), packet.Layers{EtherType: 0x86dd, L3: 14}},
		{"other type", splice(tcp4, 12, 2, 0x88, 0xcc), packet.Layers{EtherType: 0x88cc}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := packet.ParseLayers(tt.b); got != tt.want {
				t.Errorf("ParseLayers\n got %+v\nwant %+v", got, tt.want)
			}
		})
	}
}

func TestSound(t *testing.T) {
	tcp4 := pt.TCP4(pt.Options{})
	for _, tt := range []struct {
		name string
		b    []byte
		want bool
	}{
		{"good", tcp4, true},
		{"total length beyond frame", poke(tcp4, 17, 41), false},
		{"ipv4 cut short", tcp4[:20], false},
		{"type not read", splice(tcp4, 12, 2, 0x88, 0xcc), true},
		{"no Ethernet header", tcp4[:10], false},
	} {
		l := packet.ParseLayers(tt.b)
		if got := l.Sound(); got != tt.want {
			t.Errorf("%s: Sound() = %v", tt.name, got)
		}
	}
}
