// Package gopackettest reads frames in tests by gopacket, an independent implementation.
package gopackettest

import (
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

// Parse reads an Ethernet frame and checks every checksum. The test ends if one is wrong.
func Parse(t *testing.T, b []byte) gopacket.Packet {
	t.Helper()
	p := gopacket.NewPacket(b, layers.LayerTypeEthernet, gopacket.Default)
	if f := p.ErrorLayer(); f != nil {
		t.Fatalf("%x: %v", b, f.Error())
	}
	if tcp, ok := p.TransportLayer().(*layers.TCP); ok {
		tcp.SetNetworkLayerForChecksum(p.NetworkLayer())
	}
	if icmp, ok := p.Layer(layers.LayerTypeICMPv6).(*layers.ICMPv6); ok {
		icmp.SetNetworkLayerForChecksum(p.NetworkLayer())
	}
	if err, bad := p.VerifyChecksums(); err != nil || len(bad) > 0 {
		t.Fatalf("%x: checksums: %v %v", b, err, bad)
	}
	return p
}

// ICMP is the type and code of a packet's ICMP or ICMPv6 message, and the packet that an
// error quotes. They are zero if the packet has no such message.
func ICMP(p gopacket.Packet) (typ, code uint8, quote []byte) {
	if l, ok := p.Layer(layers.LayerTypeICMPv4).(*layers.ICMPv4); ok {
		return l.TypeCode.Type(), l.TypeCode.Code(), l.Payload
	}
	l, ok := p.Layer(layers.LayerTypeICMPv6).(*layers.ICMPv6)
	if !ok {
		return 0, 0, nil
	}
	return l.TypeCode.Type(), l.TypeCode.Code(), l.Payload[4:] // gopacket reads the first word only
}
