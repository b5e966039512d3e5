package reject

import (
	"bytes"
	"net/netip"
	"slices"
	"testing"

	"github.com/antrail/antrail/internal/gopackettest"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

// rejection is the answer to a frame; nil if there is none.
func rejection(frame []byte, why codes) []byte {
	r, ok := rejectable(frame)
	if !ok {
		return nil
	}
	return r.rejection(why)
}

func swapped(t *testing.T, in, out gopacket.Packet) {
	t.Helper()
	a, b := in.LinkLayer().LinkFlow(), out.LinkLayer().LinkFlow()
	if a.Reverse() != b {
		t.Errorf("MACs %v, want those of %v the other way round", b, a)
	}
	a, b = in.NetworkLayer().NetworkFlow(), out.NetworkLayer().NetworkFlow()
	if a.Reverse() != b {
		t.Errorf("addresses %v, want those of %v the other way round", b, a)
	}
}

func TestRejectTCP(t *testing.T) {
	for _, s := range []struct {
		name     string
		o        packettest.Options
		seq, ack uint32
		withAck  bool
	}{
		{"SYN", packettest.Options{Seq: 1000}, 0, 1001, true},
		{"SYN with data", packettest.Options{Seq: 1000, Payload: []byte("hello")}, 0, 1006, true},
		{"FIN at the end of the number space", packettest.Options{Seq: 0xffffffff, TCPFlags: packet.TCPFin}, 0, 0, true},
		{"ACK", packettest.Options{Seq: 1000, Ack: 77, TCPFlags: packet.TCPAck, Payload: []byte("x")}, 77, 0, false},
		{"SYN and ACK", packettest.Options{Seq: 1000, Ack: 78, TCPFlags: packet.TCPSyn | packet.TCPAck}, 78, 0, false},
		{"TCP options", packettest.Options{Seq: 5, IPOptions: make([]byte, 8), TCPOptions: make([]byte, 4)}, 0, 6, true},
	} {
		for family, frame := range map[string][]byte{"IPv4": packettest.TCP4(s.o), "IPv6": packettest.TCP6(s.o)} {
			t.Run(s.name+" "+family, func(t *testing.T) {
				out := gopackettest.Parse(t, rejection(frame, portUnreachable))
				swapped(t, gopacket.NewPacket(frame, layers.LayerTypeEthernet, gopacket.Default), out)
				tcp := out.Layer(layers.LayerTypeTCP).(*layers.TCP)
				if !tcp.RST || tcp.ACK != s.withAck || tcp.SYN || tcp.FIN {
					t.Errorf("flags of %+v", tcp)
				}
				if tcp.Seq != s.seq || tcp.Ack != s.ack {
					t.Errorf("seq %d ack %d, want %d and %d", tcp.Seq, tcp.Ack, s.seq, s.ack)
				}
				if tcp.SrcPort != 80 || tcp.DstPort != 1000 {
					t.Errorf("ports %d to %d", tcp.SrcPort, tcp.DstPort)
				}
			})
		}
	}
}

func TestRejectOthers(t *testing.T) {
	for _, s := range []struct {
		name      string
		frame     []byte
		why       codes
		typ, code uint8
		most      int // bytes of the answer's IP packet
	}{
		{"UDP", packettest.UDP4(packettest.Options{Payload: []byte("a question")}), portUnreachable, 3, 3, 576},
		{"UDP to who is protected", packettest.UDP4(packettest.Options{}), prohibited, 3, 10, 576},
		{"long UDP", packettest.UDP4(packettest.Options{Payload: make([]byte, 1400)}), prohibited, 3, 10, 576},
		{"a first fragment", packettest.UDP4(packettest.Options{FlagsOffset: packet.IPv4MoreFragments}), prohibited, 3, 10, 576},
		{"echo", packettest.ICMPEcho4(packettest.Options{ICMPID: 7}), prohibited, 3, 10, 576},
		{"SCTP", packettest.SCTP4(packettest.Options{}), prohibited, 3, 10, 576},
		{"UDP in IPv6", packettest.UDP6(packettest.Options{}), portUnreachable, 1, 4, 1280},
		{"long UDP in IPv6", packettest.UDP6(packettest.Options{Payload: make([]byte, 1400)}), prohibited, 1, 1, 1280},
		{"echo in IPv6", packettest.ICMPEcho6(packettest.Options{}), prohibited, 1, 1, 1280},
		{"SCTP in IPv6", packettest.SCTP6(packettest.Options{}), prohibited, 1, 1, 1280},
	} {
		t.Run(s.name, func(t *testing.T) {
			out := gopackettest.Parse(t, rejection(s.frame, s.why))
			swapped(t, gopacket.NewPacket(s.frame, layers.LayerTypeEthernet, gopacket.Default), out)
			typ, code, quote := gopackettest.ICMP(out)
			if typ != s.typ || code != s.code {
				t.Errorf("ICMP type %d, code %d; want %d and %d", typ, code, s.typ, s.code)
			}
			if !bytes.HasPrefix(s.frame[14:], quote) || len(quote) < 28 {
				t.Errorf("quoted %x of %x", quote, s.frame[14:])
			}
			if n := len(out.Data()) - 14; n > s.most {
				t.Errorf("%d bytes", n)
			}
		})
	}
}

func TestRejectStaysSilent(t *testing.T) {
	reply := packettest.TCP4(packettest.Options{TCPFlags: packet.TCPRst})
	tagged := packettest.UDP4(packettest.Options{VLAN: 5})
	twiceTagged := slices.Concat(tagged[:16], []byte{0x81, 0, 0, 6}, tagged[16:])
	if out := tooBig(tagged, 1400); out != nil {
		t.Errorf("a tagged frame was told its length with %x", out)
	}
	for name, frame := range map[string][]byte{
		"a reset":            reply,
		"an ICMP error":      packettest.ICMPError4(packettest.Options{}, 3, 1, reply[14:], 28),
		"a later fragment":   packettest.UDP4(packettest.Options{FlagsOffset: 100, Payload: make([]byte, 64)}),
		"multicast":          packettest.UDP4(packettest.Options{Dst: netip.MustParseAddr("224.0.0.1")}),
		"broadcast":          packettest.UDP4(packettest.Options{Dst: netip.MustParseAddr("255.255.255.255")}),
		"no source":          packettest.UDP4(packettest.Options{Src: netip.MustParseAddr("0.0.0.0")}),
		"ARP":                packettest.ARPRequest(packettest.Options{}),
		"a reset in IPv6":    packettest.TCP6(packettest.Options{TCPFlags: packet.TCPRst}),
		"an ICMPv6 error":    packettest.ICMP6(packettest.Options{Payload: make([]byte, 48)}, 1, 4, 0),
		"an unknown error":   packettest.ICMP6(packettest.Options{Payload: make([]byte, 48)}, 100, 0, 0),
		"an ICMPv6 redirect": packettest.ICMP6(packettest.Options{Payload: make([]byte, 32)}, 137, 0, 0),
		"IPv6 multicast":     packettest.UDP6(packettest.Options{Dst: netip.MustParseAddr("ff02::1")}),
		"link-local":         packettest.UDP6(packettest.Options{Src: netip.MustParseAddr("fe80::1")}),
		"to every station":   packettest.UDP4(packettest.Options{EthDst: [6]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}}),
		"two VLAN tags":      twiceTagged,
		"a cut-off header":   packettest.TCP4(packettest.Options{})[:40],
		"less than a frame":  {1, 2, 3},
		"nothing":            nil,
	} {
		if out := rejection(frame, prohibited); out != nil {
			t.Errorf("%s was answered with %x", name, out)
		}
		if name == "a reset" || name == "a reset in IPv6" {
			continue // gets its length like any packet
		}
		if out := tooBig(frame, 1400); out != nil {
			t.Errorf("%s was told its length with %x", name, out)
		}
	}
}

// TestTooBig: the sender of a too long packet gets the length that fits, and the
// beginning of its packet.
func TestTooBig(t *testing.T) {
	long := make([]byte, 1400)
	df4 := packettest.TCP4(packettest.Options{Payload: long, FlagsOffset: packet.IPv4DontFragment})
	udp6, tcp6 := packettest.UDP6(packettest.Options{Payload: long}), packettest.TCP6(packettest.Options{Payload: long})
	for _, s := range []struct {
		name      string
		frame     []byte
		mtu       int
		typ, code uint8
		says      uint32
		most      int // bytes of answer behind Ethernet's header
	}{
		{"IPv4", df4, 1300, 3, 4, 1300, 576},
		{"IPv4, less than any way has", df4, 100, 3, 4, 576, 576},
		{"IPv6", tcp6, 1300, 2, 0, 1300, 1280},
		{"IPv6, less than any way has", udp6, 1230, 2, 0, 1280, 1280},
	} {
		t.Run(s.name, func(t *testing.T) {
			b := tooBig(s.frame, s.mtu)
			out := gopackettest.Parse(t, b)
			swapped(t, gopacket.NewPacket(s.frame, layers.LayerTypeEthernet, gopacket.Default), out)
			typ, code, quote := gopackettest.ICMP(out)
			l := packet.ParseLayers(b)
			if says := packet.ICMP(b[l.L4:]).Rest(); typ != s.typ || code != s.code || says != s.says {
				t.Errorf("type %d, code %d, MTU %d; want %d, %d, %d", typ, code, says, s.typ, s.code, s.says)
			}
			if len(b)-14 != s.most || !bytes.HasPrefix(s.frame[14:], quote) {
				t.Errorf("%d bytes, quoting %x", len(b)-14, quote)
			}
		})
	}
	if tooBig(packettest.UDP4(packettest.Options{Payload: long}), 1300) != nil {
		t.Error("a sender who lets routers fragment was answered")
	}
}

func FuzzRejection(f *testing.F) {
	f.Add(packettest.TCP4(packettest.Options{}))
	f.Add(packettest.UDP4(packettest.Options{IPOptions: make([]byte, 40)}))
	f.Add(packettest.ICMPEcho4(packettest.Options{}))
	f.Add(packettest.TCP6(packettest.Options{}))
	f.Add(packettest.ICMPEcho6(packettest.Options{}))
	f.Fuzz(func(t *testing.T, frame []byte) {
		if out := tooBig(frame, 1300); out != nil {
			gopackettest.Parse(t, out)
		}
		if out := rejection(frame, prohibited); out != nil {
			gopackettest.Parse(t, out)
			if again := rejection(out, prohibited); again != nil {
				t.Errorf("the answer %x would be answered with %x", out, again)
			}
		}
	})
}
