package demo

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"

	"github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/tunnel"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

// wrapped is a frame in a tunnel, made by gopacket.
func wrapped(t testing.TB, kind tunnel.Kind, inner []byte) []byte {
	t.Helper()
	ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: []byte{192, 0, 2, 1}, DstIP: []byte{192, 0, 2, 2}}
	udp := &layers.UDP{SrcPort: 40000, DstPort: portGeneve}
	if err := udp.SetNetworkLayerForChecksum(ip); err != nil {
		t.Fatal(err)
	}
	all := []gopacket.SerializableLayer{&layers.Ethernet{SrcMAC: make([]byte, 6), DstMAC: make([]byte, 6), EthernetType: layers.EthernetTypeIPv4}, ip, udp}
	switch kind {
	case tunnel.KindGeneve:
		all = append(all, gopacket.Payload{1, 0, 0x65, 0x58, 0, 0, 0, 0, 1, 2, 3, 0}) // one option
	case tunnel.KindVXLAN:
		udp.DstPort = portVXLAN
		all = append(all, &layers.VXLAN{ValidIDFlag: true})
	case tunnel.KindGRE:
		ip.Protocol = layers.IPProtocolGRE
		all[2] = &layers.GRE{Protocol: layers.EthernetTypeTransparentEthernetBridging, KeyPresent: true}
	}
	b := gopacket.NewSerializeBuffer()
	options := gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}
	if err := gopacket.SerializeLayers(b, options, append(all, gopacket.Payload(inner))...); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// innerFrames are frames of pods.
var innerFrames = [][]byte{
	packettest.TCP4(packettest.Options{Payload: []byte("odd")}), packettest.TCP6(packettest.Options{}), packettest.UDP4(packettest.Options{}),
	packettest.UDP6(packettest.Options{}), packettest.ICMPEcho4(packettest.Options{}), packettest.ICMPEcho6(packettest.Options{}),
}

// TestCaptured reads what gopacket has wrapped, and sees each broken byte of a checksum.
func TestCaptured(t *testing.T) {
	nodes := [2]netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")}
	for _, kind := range []tunnel.Kind{tunnel.KindGeneve, tunnel.KindVXLAN, tunnel.KindGRE} {
		for _, inner := range innerFrames {
			frame := wrapped(t, kind, inner)
			var c captured
			if err := c.frame(frame); err != nil || c.wrong != nil {
				t.Fatalf("%v: %v, %v: %x", kind, err, c.wrong, frame)
			}
			if len(c.ends) != 2 || c.ends[0] != nodes || c.kind != kind || !c.plain() {
				t.Errorf("%v: %+v", kind, c)
			}
			last := slices.Clone(frame)
			last[len(last)-1] ^= 1
			c = captured{}
			if err := c.frame(last); err != nil || c.wrong == nil {
				t.Errorf("%v: a changed byte is not seen: %v", kind, err)
			}
		}
		arp := wrapped(t, kind, packettest.ARPRequest(packettest.Options{}))
		var c captured
		if err := c.frame(arp); err != nil || !c.arp || len(c.ends) != 1 {
			t.Errorf("%v: ARP: %+v, %v", kind, c, err)
		}
		network := c.header[4:]
		binary.BigEndian.PutUint32(network, 0x700)
		if c.plain() {
			t.Errorf("%v: network 7 counts as plain", kind)
		}
	}
}

// FuzzCaptured: whatever a frame holds, reading it ends.
func FuzzCaptured(f *testing.F) {
	for _, inner := range innerFrames {
		f.Add(inner)
		f.Add(wrapped(f, tunnel.KindGeneve, inner))
		f.Add(wrapped(f, tunnel.KindGRE, inner))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var c captured
		if c.frame(b) == nil && c.header != nil {
			c.plain()
		}
	})
}
