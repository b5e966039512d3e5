package attack

import (
	"bytes"
	"testing"

	"github.com/antrail/antrail/lab"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

// TestFramesAreWhatTheySay parses frames with an independent parser. Each has the header
// that it is about, and the marker.
func TestFramesAreWhatTheySay(t *testing.T) {
	l := &lab.Lab{Topology: lab.TwoNodes()}
	for _, c := range []struct {
		name string
		v6   bool
		make func(*stage) [][]byte
		has  func(gopacket.Packet) bool
	}{
		{"loose source route", false, sourceRoute(optionLoose), func(p gopacket.Packet) bool {
			return p.NetworkLayer().(*layers.IPv4).Options[1].OptionType == optionLoose
		}},
		{"routing header", true, routingHeader, func(p gopacket.Packet) bool {
			r, is := p.Layer(layers.LayerTypeIPv6Routing).(*layers.IPv6Routing)
			return is && r.RoutingType == 0 && r.SegmentsLeft == 1 && len(r.SourceRoutingIPs) == 1
		}},
		{"9 extension headers", true, manyExtensions, func(p gopacket.Packet) bool {
			n := 0
			for _, l := range p.Layers() {
				if l.LayerType() == layers.LayerTypeIPv6Destination {
					n++
				}
			}
			return n == 9 && p.Layer(layers.LayerTypeICMPv6) != nil
		}},
		{"tag", false, oneTag, func(p gopacket.Packet) bool {
			return p.Layer(layers.LayerTypeDot1Q) != nil && p.Layer(layers.LayerTypeICMPv4) != nil
		}},
		{"TTL 0", false, expired, func(p gopacket.Packet) bool { return p.NetworkLayer().(*layers.IPv4).TTL == 0 }},
		{"hop limit 0", true, expired, func(p gopacket.Packet) bool { return p.NetworkLayer().(*layers.IPv6).HopLimit == 0 }},
		{"redirect", true, redirect, func(p gopacket.Packet) bool { return p.Layer(layers.LayerTypeICMPv6Redirect) != nil }},
		{"hop limit 64", true, nearND, func(p gopacket.Packet) bool {
			return p.NetworkLayer().(*layers.IPv6).HopLimit == 64 && p.Layer(layers.LayerTypeICMPv6) != nil
		}},
		{"fragments", true, fragmentedND, func(p gopacket.Packet) bool { return p.Layer(layers.LayerTypeIPv6Fragment) != nil }},
		{"multicast", true, unicastUDP, func(p gopacket.Packet) bool {
			return p.NetworkLayer().(*layers.IPv6).DstIP.IsMulticast() && p.LinkLayer().(*layers.Ethernet).DstMAC[0]&1 == 0
		}},
	} {
		s := &stage{lab: l, v6: c.v6, marker: []byte("marker01")}
		marked := false
		for _, f := range c.make(s) {
			p := gopacket.NewPacket(f, layers.LayerTypeEthernet, gopacket.Default)
			if err := p.ErrorLayer(); err != nil || !c.has(p) {
				t.Errorf("%s: %v, %v", c.name, err, p)
			}
			marked = marked || bytes.Contains(f, s.marker)
		}
		if !marked {
			t.Errorf("%s: no frame has the marker", c.name)
		}
	}
}
