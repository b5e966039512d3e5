package packet_test

import (
	"bytes"
	"testing"

	"github.com/antrail/antrail/packet"
	pt "github.com/antrail/antrail/packet/packettest"
)

func TestReadFragment(t *testing.T) {
	payload := make([]byte, 3000)
	for i := range payload {
		payload[i] = byte(i >> 3)
	}
	hop := []byte{packet.ProtoUDP, 0, 1, 4, 0, 0, 0, 0}
	udp6 := pt.UDP6(pt.Options{Payload: payload})
	for name, whole := range map[string][]byte{
		"ipv4":              pt.UDP4(pt.Options{Payload: payload}),
		"ipv4 options":      pt.UDP4(pt.Options{Payload: payload, IPOptions: make([]byte, 8)}),
		"ipv4 vlan":         pt.UDP4(pt.Options{Payload: payload, VLAN: 5}),
		"ipv6":              udp6,
		"ipv6 hop-by-hop":   ext6(udp6, packet.ProtoHopByHop, hop...),
		"ipv6 dest options": ext6(udp6, packet.ProtoDestOpts, hop...),
	} {
		t.Run(name, func(t *testing.T) {
			parts := pt.Split(whole, 0x1234, 1400, 2800)
			for i, b := range parts {
				l := packet.ParseLayers(b)
				g, ok := packet.ReadFragment(b, &l)
				if !ok || g.ID != 0x1234 || g.Offset != 1400*i || g.More != (i < 2) || g.End != len(b) {
					t.Errorf("fragment %d is read as %+v, %v", i, g, ok)
				}
			}
			if got := pt.Join([][]byte{parts[2], parts[0], parts[1]}); !bytes.Equal(got, whole) {
				t.Errorf("joined\n got %x\nwant %x", got[:80], whole[:80])
			}
			if pt.Join(parts[:1]) != nil && pt.Join(parts[1:]) != nil {
				t.Error("parts of a datagram were joined")
			}
			l := packet.ParseLayers(whole)
			if g, ok := packet.ReadFragment(whole, &l); ok {
				t.Errorf("a whole packet is read as %+v", g)
			}
		})
	}
}
