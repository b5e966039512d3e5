package tunnel

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/antrail/antrail/packet"
	pt "github.com/antrail/antrail/packet/packettest"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

var (
	nodeA = netip.MustParseAddr("192.168.77.101")
	nodeB = netip.MustParseAddr("192.168.77.102")
)

func frame(b []byte) *packet.Frame {
	f := packet.NewFrame(make([]byte, packet.Headroom+len(b)), nil)
	f.SetBytes(b)
	return f
}

// geneve is a Geneve packet: its header's first four bytes, options, payload.
func geneve(first [4]byte, options, payload []byte) []byte {
	b := append(first[:], 0, 0, 7, 0)
	return append(append(b, options...), payload...)
}

func TestDecap(t *testing.T) {
	inner := pt.TCP4(pt.Options{})
	teb := [4]byte{0, 0, 0x65, 0x58}
	options := []byte{1, 2, 0x7f, 1, 9, 9, 9, 9, 0, 1, 3, 0}
	critical := []byte{1, 2, 0x80, 1, 9, 9, 9, 9}
	tests := []struct {
		name string
		b    []byte
		want Reason
	}{
		{"plain", geneve(teb, nil, inner), None},
		{"reserved bits set", geneve([4]byte{0, 0x3f, 0x65, 0x58}, nil, inner), None},
		{"options", geneve([4]byte{3, 0, 0x65, 0x58}, options, inner), None},
		{"smallest inner frame", geneve(teb, nil, inner[:14]), None},
		{"empty", nil, Short},
		{"7 bytes", geneve(teb, nil, nil)[:7], Short},
		{"version 1", geneve([4]byte{0x40, 0, 0x65, 0x58}, nil, inner), Version},
		{"Opt Len beyond the packet", geneve([4]byte{0x3f, 0, 0x65, 0x58}, nil, inner), HeaderLength},
		{"control message", geneve([4]byte{0, 0x80, 0x65, 0x58}, nil, inner), Control},
		{"IPv4 payload", geneve([4]byte{0, 0, 8, 0}, nil, inner), Protocol},
		{"option beyond the options", geneve([4]byte{1, 0, 0x65, 0x58}, []byte{1, 2, 3, 1}, inner), OptionLength},
		{"second option beyond the options", geneve([4]byte{3, 0, 0x65, 0x58}, append(options[:8:8], 1, 2, 3, 31), inner), OptionLength},
		{"critical option", geneve([4]byte{2, 0x40, 0x65, 0x58}, critical, inner), CriticalOption},
		{"critical option without C", geneve([4]byte{2, 0, 0x65, 0x58}, critical, inner), CriticalOption},
		{"inner frame of 13 bytes", geneve(teb, nil, inner[:13]), Inner},
	}
	produced := map[Reason]bool{}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := frame(tt.b)
			got := Decap(f)
			produced[got] = true
			switch {
			case got != tt.want:
				t.Errorf("Decap = %v, want %v", got, tt.want)
			case got == None && (f.Tunnel.ID != 7 || !bytes.HasPrefix(inner, f.Bytes()) || f.Len() < 14):
				t.Errorf("VNI %d, inner %x", f.Tunnel.ID, f.Bytes())
			case got != None && (!bytes.Equal(f.Bytes(), tt.b) || f.Tunnel.ID != 0):
				t.Error("a refused frame was changed")
			}
		})
	}
	for r := None; r <= Inner; r++ {
		if !produced[r] {
			t.Errorf("no case ends in %q", r)
		}
	}
}

func TestEncapAgainstGopacket(t *testing.T) {
	for name, addrs := range map[string][2]netip.Addr{
		"ipv4": {nodeA, nodeB},
		"ipv6": {netip.MustParseAddr("fd77::101"), netip.MustParseAddr("fd77::102")},
	} {
		inner := pt.TCP4(pt.Options{Payload: []byte("through the tunnel")})
		f := frame(inner)
		f.Tunnel = packet.Tunnel{Src: addrs[0], Dst: addrs[1], ID: 0xabcdef}
		if why := Encap(f); why != None {
			t.Fatalf("%s: %v", name, why)
		}
		p := gopacket.NewPacket(f.Bytes(), layers.LayerTypeUDP, gopacket.Default)
		udp := p.Layer(layers.LayerTypeUDP).(*layers.UDP)
		g := p.Layer(layers.LayerTypeGeneve).(*layers.Geneve)
		if udp.DstPort != GenevePort || udp.SrcPort < 49152 || int(udp.Length) != f.Len() {
			t.Errorf("%s: UDP %d to %d, length %d of %d", name, udp.SrcPort, udp.DstPort, udp.Length, f.Len())
		}
		if g.Version != 0 || g.VNI != 0xabcdef || g.Protocol != packet.EtherTypeTEB || g.OAMPacket || len(g.Options) != 0 {
			t.Errorf("%s: Geneve %+v", name, g)
		}
		if !bytes.Equal(g.Payload, inner) {
			t.Errorf("%s: inner frame changed:\n got %x\nwant %x", name, g.Payload, inner)
		}
		if want := outerChecksum(t, addrs, f.Bytes()); udp.Checksum != want {
			t.Errorf("%s: UDP checksum %#x, want %#x", name, udp.Checksum, want)
		}
		f.TrimFront(packet.UDPLen)
		if why := Decap(f); why != None || !bytes.Equal(f.Bytes(), inner) {
			t.Errorf("%s: Decap of what Encap made: %v", name, why)
		}
	}
}

// outerChecksum is 0 over IPv4 and what gopacket computes over IPv6.
func outerChecksum(t *testing.T, addrs [2]netip.Addr, datagram []byte) uint16 {
	t.Helper()
	if addrs[0].Is4() {
		return 0
	}
	ip := &layers.IPv6{SrcIP: addrs[0].AsSlice(), DstIP: addrs[1].AsSlice(), NextHeader: layers.IPProtocolUDP}
	h := packet.UDP(datagram)
	udp := &layers.UDP{SrcPort: layers.UDPPort(h.SrcPort()), DstPort: layers.UDPPort(h.DstPort())}
	udp.SetNetworkLayerForChecksum(ip)
	buf := gopacket.NewSerializeBuffer()
	opts := gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}
	if err := gopacket.SerializeLayers(buf, opts, udp, gopacket.Payload(h.Payload())); err != nil {
		t.Fatal(err)
	}
	return udp.Checksum
}

func TestEncapRefuses(t *testing.T) {
	inner := pt.TCP4(pt.Options{})
	tight := packet.NewFrame(bytes.Clone(inner), nil)
	tight.SetBounds(0, len(inner))
	for _, tt := range []struct {
		name     string
		f        *packet.Frame
		src, dst netip.Addr
		want     Reason
	}{
		{"no destination", frame(inner), nodeA, netip.Addr{}, Addresses},
		{"no source", frame(inner), netip.Addr{}, nodeB, Addresses},
		{"two families", frame(inner), nodeA, netip.MustParseAddr("fd77::102"), Addresses},
		{"no Ethernet header", frame(inner[:13]), nodeA, nodeB, Inner},
		{"no headroom", tight, nodeA, nodeB, Headroom},
		{"64 kB", frame(make([]byte, 65500)), nodeA, nodeB, TooLong},
	} {
		before := bytes.Clone(tt.f.Bytes())
		tt.f.Tunnel.Src, tt.f.Tunnel.Dst = tt.src, tt.dst
		if got := Encap(tt.f); got != tt.want || !bytes.Equal(tt.f.Bytes(), before) {
			t.Errorf("%s: Encap = %v, want %v and the frame unchanged", tt.name, got, tt.want)
		}
	}
}

func TestSourcePort(t *testing.T) {
	seen := map[uint16]int{}
	for i := range 4096 {
		port := SourcePort(pt.TCP4(pt.Options{SrcPort: 1024 + uint16(i)}))
		if port < 49152 {
			t.Fatalf("port %d below the dynamic range", port)
		}
		seen[port]++
	}
	// 4096 balls in 16384 bins fill about 3620 of them.
	if len(seen) < 3400 {
		t.Errorf("4096 flows share %d ports", len(seen))
	}
	a := pt.UDP4(pt.Options{Payload: []byte("a")})
	b := pt.UDP4(pt.Options{Payload: []byte("other"), ID: 9, TTL: 3})
	if SourcePort(a) != SourcePort(b) {
		t.Error("two packets of one flow differ")
	}
	first := pt.UDP4(pt.Options{FlagsOffset: packet.IPv4MoreFragments})
	later := pt.UDP4(pt.Options{FlagsOffset: 185})
	if SourcePort(first) != SourcePort(later) {
		t.Error("fragments of one packet differ")
	}
}

func TestSentences(t *testing.T) {
	seen := map[string]Reason{}
	for r := None; r < NumReasons; r++ {
		s := r.String()
		if other, twice := seen[s]; s == "" || twice {
			t.Errorf("reasons %d and %d share the sentence %q", r, other, s)
		}
		seen[s] = r
	}
}

func TestAllocations(t *testing.T) {
	inner := pt.TCP4(pt.Options{})
	for name, addrs := range map[string][2]netip.Addr{
		"ipv4": {nodeA, nodeB},
		"ipv6": {netip.MustParseAddr("fd77::101"), netip.MustParseAddr("fd77::102")},
	} {
		f := frame(inner)
		got := testing.AllocsPerRun(100, func() {
			f.SetBytes(inner)
			f.Tunnel = packet.Tunnel{Src: addrs[0], Dst: addrs[1], ID: 1}
			Encap(f)
			f.TrimFront(packet.UDPLen)
			Decap(f)
		})
		if got != 0 {
			t.Errorf("%s: %v allocations per packet", name, got)
		}
	}
}

func FuzzDecap(f *testing.F) {
	inner := pt.TCP4(pt.Options{})
	f.Add(geneve([4]byte{0, 0, 0x65, 0x58}, nil, inner))
	f.Add(geneve([4]byte{3, 0, 0x65, 0x58}, []byte{1, 2, 0x7f, 1, 9, 9, 9, 9, 0, 1, 3, 0}, inner))
	f.Add(geneve([4]byte{2, 0x40, 0x65, 0x58}, []byte{1, 2, 0x80, 1, 9, 9, 9, 9}, inner))
	f.Fuzz(func(t *testing.T, b []byte) {
		fr := frame(b)
		why := Decap(fr)
		switch {
		case why != None && !bytes.Equal(fr.Bytes(), b):
			t.Errorf("refused (%v), but changed", why)
		case why == None && (!bytes.HasSuffix(b, fr.Bytes()) || fr.Len() < packet.EthernetLen):
			t.Errorf("inner frame %x of %x", fr.Bytes(), b)
		case why == None && fr.Tunnel.ID>>24 != 0:
			t.Errorf("VNI %#x has more than 24 bits", fr.Tunnel.ID)
		}
	})
}

func BenchmarkEncap(b *testing.B) {
	inner := pt.TCP4(pt.Options{})
	f := frame(inner)
	for b.Loop() {
		f.SetBytes(inner)
		f.Tunnel = packet.Tunnel{Src: nodeA, Dst: nodeB, ID: 1}
		Encap(f)
	}
}
