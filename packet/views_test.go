package packet_test

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/antrail/antrail/packet"
	pt "github.com/antrail/antrail/packet/packettest"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

// canonical is one packet of each kind that the switch reads, with recognisable
// values in most fields.
func canonical() map[string][]byte {
	o := pt.Options{
		SrcPort: 4321, DstPort: 8080, TTL: 63, TOS: 0xb9, ID: 0x1234, Seq: 0x01020304, Ack: 0x05060708,
		TCPFlags: packet.TCPAck | packet.TCPPsh | packet.TCPCwr, Window: 4096, ICMPID: 77, ICMPSeq: 9,
		TCPOptions: []byte{2, 4, 5, 0xb4, 1, 3, 3, 7}, Payload: []byte("payload"),
	}
	s := o
	s.Payload = nil
	tagged := o
	tagged.VLAN = 0x6064
	return map[string][]byte{
		"tcp4": pt.TCP4(o), "tcp6": pt.TCP6(o), "udp4": pt.UDP4(o), "udp6": pt.UDP6(o),
		"sctp4": pt.SCTP4(s), "sctp6": pt.SCTP6(s), "icmp4": pt.ICMPEcho4(o), "icmp6": pt.ICMPEcho6(o),
		"arp": pt.ARPRequest(o), "ns": pt.NeighborSolicit6(s), "vlan": pt.TCP4(tagged),
		"error4": pt.ICMPError4(o, packet.ICMPUnreachable, 3, pt.UDP4(o), 8),
	}
}

// TestViewsAgainstGopacket decodes the canonical packets with gopacket and
// compares field by field. Then gopacket writes them again with its own lengths
// and checksums: the bytes must be the same.
func TestViewsAgainstGopacket(t *testing.T) {
	for name, b := range canonical() {
		t.Run(name, func(t *testing.T) {
			p := gopacket.NewPacket(b, layers.LayerTypeEthernet, gopacket.Default)
			if e := p.ErrorLayer(); e != nil {
				t.Fatalf("gopacket: %v", e.Error())
			}
			l := packet.ParseLayers(b)
			for _, layer := range p.Layers() {
				compareNetwork(t, b, &l, layer)
				compareTransport(t, b[l.L4:max(l.L4, l.End)], layer)
			}
			// gopacket pads to Ethernet's minimum size.
			got := rewrite(t, p)
			if !packetOrPadding(got, b) {
				t.Errorf("written again by gopacket\n got %x\nwant %x", got, b)
			}
		})
	}
}

// packetOrPadding reports whether got is want and nothing but zeros behind it.
func packetOrPadding(got, want []byte) bool {
	return bytes.HasPrefix(got, want) && len(bytes.Trim(got[len(want):], "\x00")) == 0
}

// rewrite serialises p with gopacket, lengths and checksums computed by it.
func rewrite(t *testing.T, p gopacket.Packet) []byte {
	t.Helper()
	var parts []gopacket.SerializableLayer
	for _, layer := range p.Layers() {
		switch h := layer.(type) {
		case *layers.TCP:
			h.SetNetworkLayerForChecksum(p.NetworkLayer())
		case *layers.UDP:
			h.SetNetworkLayerForChecksum(p.NetworkLayer())
		case *layers.ICMPv6:
			h.SetNetworkLayerForChecksum(p.NetworkLayer())
		}
		parts = append(parts, layer.(gopacket.SerializableLayer))
	}
	buf := gopacket.NewSerializeBuffer()
	opts := gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}
	if err := gopacket.SerializeLayers(buf, opts, parts...); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// equal compares one field of a view with gopacket's.
func equal(t *testing.T, field string, got, want any) {
	t.Helper()
	if got != want {
		t.Errorf("%s = %v, gopacket says %v", field, got, want)
	}
}

func toAddr(b []byte) netip.Addr { a, _ := netip.AddrFromSlice(b); return a }

// compareNetwork compares a link or network header with the view over the same
// bytes.
func compareNetwork(t *testing.T, b []byte, l *packet.Layers, layer gopacket.Layer) {
	t.Helper()
	eq := func(field string, got, want any) { t.Helper(); equal(t, field, got, want) }
	switch g := layer.(type) {
	case *layers.Ethernet:
		h := packet.Ethernet(b)
		eq("eth dst", h.Dst(), [6]byte(g.DstMAC))
		eq("eth src", h.Src(), [6]byte(g.SrcMAC))
		eq("eth type", h.Type(), uint16(g.EthernetType))
	case *layers.Dot1Q:
		h := packet.VLAN(b[12:])
		eq("vid", h.TCI()&0xfff, g.VLANIdentifier)
		eq("pcp", uint8(h.TCI()>>13), g.Priority)
		eq("type behind tag", h.Type(), uint16(g.Type))
	case *layers.ARP:
		h := packet.ARP(b[l.L3:])
		eq("op", h.Op(), g.Operation)
		eq("spa", h.SPA(), toAddr(g.SourceProtAddress))
		eq("tpa", h.TPA(), toAddr(g.DstProtAddress))
		eq("sha", h.SHA(), [6]byte(g.SourceHwAddress))
		eq("tha", h.THA(), [6]byte(g.DstHwAddress))
	case *layers.IPv4:
		h := packet.IPv4(b[l.L3:])
		eq("valid", h.Valid() && h.ChecksumValid(), true)
		eq("tos", h.TOS(), g.TOS)
		eq("total length", h.TotalLen(), g.Length)
		eq("id", h.ID(), g.Id)
		eq("ttl", h.TTL(), g.TTL)
		eq("proto", h.Proto(), uint8(g.Protocol))
		eq("checksum", h.Checksum(), g.Checksum)
		eq("src", h.Src(), toAddr(g.SrcIP))
		eq("dst", h.Dst(), toAddr(g.DstIP))
		eq("payload", string(h.Payload()), string(g.Payload))
	case *layers.IPv6:
		h := packet.IPv6(b[l.L3:])
		eq("valid", h.Valid(), true)
		eq("class", h.TrafficClass(), g.TrafficClass)
		eq("label", h.FlowLabel(), g.FlowLabel)
		eq("next header", h.NextHeader(), uint8(g.NextHeader))
		eq("hop limit", h.HopLimit(), g.HopLimit)
		eq("src", h.Src(), toAddr(g.SrcIP))
		eq("dst", h.Dst(), toAddr(g.DstIP))
		eq("payload", string(h.Payload()), string(g.Payload))
	}
}

// compareTransport compares a transport header with the view over b, which
// begins with it and ends with the packet.
func compareTransport(t *testing.T, b []byte, layer gopacket.Layer) {
	t.Helper()
	eq := func(field string, got, want any) { t.Helper(); equal(t, field, got, want) }
	switch g := layer.(type) {
	case *layers.TCP:
		compareTCP(t, packet.TCP(b), g)
	case *layers.UDP:
		h := packet.UDP(b)
		eq("src port", h.SrcPort(), uint16(g.SrcPort))
		eq("dst port", h.DstPort(), uint16(g.DstPort))
		eq("length", h.Length(), g.Length)
		eq("checksum", h.Checksum(), g.Checksum)
		eq("payload", string(h.Payload()), string(g.Payload))
	case *layers.SCTP:
		h := packet.SCTP(b)
		eq("src port", h.SrcPort(), uint16(g.SrcPort))
		eq("dst port", h.DstPort(), uint16(g.DstPort))
		eq("tag", h.VerificationTag(), g.VerificationTag)
		eq("checksum", h.Checksum(), g.Checksum)
	case *layers.ICMPv4:
		h := packet.ICMP(b)
		eq("type", h.Type(), g.TypeCode.Type())
		eq("code", h.Code(), g.TypeCode.Code())
		eq("id", h.ID(), g.Id)
		eq("seq", h.Seq(), g.Seq)
		eq("quoted", string(h.Quoted()), string(g.Payload))
	case *layers.ICMPv6:
		h := packet.ICMP(b)
		eq("type", h.Type(), g.TypeCode.Type())
		eq("checksum", h.Checksum(), g.Checksum)
	case *layers.ICMPv6NeighborSolicitation:
		h := packet.ND(b)
		eq("valid", h.Valid(), true)
		eq("target", toAddr(h.Target()), toAddr(g.TargetAddress))
		typ, value, _, ok := h.Options().Next()
		eq("option", ok && typ == packet.NDOptionSourceLinkAddr, true)
		eq("option value", string(value), string(g.Options[0].Data))
	}
}

func compareTCP(t *testing.T, h packet.TCP, g *layers.TCP) {
	t.Helper()
	type fields struct {
		src, dst, window, checksum, flags uint16
		seq, ack                          uint32
		offset                            int
		payload                           string
	}
	bits := uint16(0)
	for i, set := range []bool{g.FIN, g.SYN, g.RST, g.PSH, g.ACK, g.URG, g.ECE, g.CWR, g.NS} {
		if set {
			bits |= 1 << i
		}
	}
	got := fields{h.SrcPort(), h.DstPort(), h.Window(), h.Checksum(), h.Flags(), h.Seq(), h.Ack(), h.HeaderLen(), string(h.Payload())}
	want := fields{uint16(g.SrcPort), uint16(g.DstPort), g.Window, g.Checksum, bits, g.Seq, g.Ack, int(g.DataOffset) * 4, string(g.Payload)}
	if got != want {
		t.Errorf("TCP = %+v, gopacket says %+v", got, want)
	}
}

func TestWindowScale(t *testing.T) {
	for _, tt := range []struct {
		name    string
		options []byte
		shift   uint8
		ok      bool
	}{
		{"none", nil, 0, false},
		{"first", []byte{3, 3, 7, 0}, 7, true},
		{"behind others", []byte{2, 4, 5, 180, 4, 2, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8, 1, 3, 3, 9}, 9, true},
		{"above 14", []byte{3, 3, 200, 0}, 14, true},
		{"behind the end of the list", []byte{0, 3, 3, 7}, 0, false},
		{"behind a length of 0", []byte{8, 0, 3, 3, 7, 0, 0, 0}, 0, false},
		{"behind a length of 1", []byte{8, 1, 3, 3, 7, 0, 0, 0}, 0, false},
		{"beyond the header", []byte{1, 1, 3, 3}, 0, false},
		{"wrong length", []byte{3, 4, 7, 0}, 0, false},
	} {
		b := pt.TCP4(pt.Options{TCPOptions: tt.options})
		l := packet.ParseLayers(b)
		shift, ok := packet.TCP(b[l.L4:l.End]).Options().WindowScale()
		if shift != tt.shift || ok != tt.ok {
			t.Errorf("%s: got %d %v, want %d %v", tt.name, shift, ok, tt.shift, tt.ok)
		}
	}
}

func TestSCTPChunks(t *testing.T) {
	b := pt.SCTP4(pt.Options{Payload: []byte{0, 3, 0, 5, 'x', 0, 0, 0, 7, 0, 0, 4, 6, 0, 0, 3}})
	l := packet.ParseLayers(b)
	typ, flags, value, rest, ok := packet.SCTP(b[l.L4:l.End]).Chunks().Next()
	if typ != packet.SCTPData || flags != 3 || string(value) != "x" || !ok {
		t.Errorf("first chunk: %d %d %q %v", typ, flags, value, ok)
	}
	if typ, _, value, rest, ok = rest.Next(); typ != packet.SCTPShutdown || len(value) != 0 || !ok {
		t.Errorf("second chunk: %d %q %v", typ, value, ok)
	}
	if _, _, _, _, ok = rest.Next(); ok {
		t.Error("a chunk of length 3 is accepted")
	}
}

func TestICMPErrors(t *testing.T) {
	for typ := range 256 {
		want4 := typ == 3 || typ == 4 || typ == 5 || typ == 11 || typ == 12
		want6 := typ >= 1 && typ <= 4
		if packet.ICMPError(uint8(typ)) != want4 || packet.ICMPv6Error(uint8(typ)) != want6 {
			t.Errorf("type %d: ICMP %v, ICMPv6 %v", typ, !want4, !want6)
		}
	}
}

// TestAllocations: reading, verifying and changing a packet allocates nothing.
func TestAllocations(t *testing.T) {
	for name, b := range canonical() {
		f := packet.NewFrame(make([]byte, 2048), nil)
		got := testing.AllocsPerRun(100, func() {
			f.SetBytes(b)
			packet.PushVLAN(f, packet.EtherTypeVLAN, 5)
			packet.PopVLAN(f)
			l := packet.ParseLayers(f.Bytes())
			l.L4Valid(f.Bytes())
			l.SetL4Checksum(f.Bytes())
			packet.CompleteChecksum(f, &l)
		})
		if got != 0 {
			t.Errorf("%s: %v allocations per packet", name, got)
		}
	}
}

func BenchmarkParseLayers(b *testing.B) {
	p := pt.TCP4(pt.Options{})
	for b.Loop() {
		packet.ParseLayers(p)
	}
}
