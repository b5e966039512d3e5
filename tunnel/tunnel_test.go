package tunnel

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/antrail/antrail/packet"
	pt "github.com/antrail/antrail/packet/packettest"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

// geneve is a Geneve packet: its header's first four bytes, options, payload.
func geneve(first [4]byte, options, payload []byte) []byte {
	b := append(first[:], 0, 0, 7, 0)
	return append(append(b, options...), payload...)
}

// gre is a GRE packet: flags, protocol, and what follows them.
func gre(flags, protocol uint16, parts ...[]byte) []byte {
	b := []byte{byte(flags >> 8), byte(flags), byte(protocol >> 8), byte(protocol)}
	return append(b, bytes.Join(parts, nil)...)
}

// sum is a GRE packet with its checksum, which comes first of the optional fields.
func sum(b []byte) []byte {
	binary.BigEndian.PutUint16(b[4:], packet.Checksum(b, 0))
	return b
}

func TestUnwrap(t *testing.T) {
	inner := pt.TCP4(pt.Options{})
	teb := [4]byte{0, 0, 0x65, 0x58}
	options := []byte{1, 2, 0x7f, 1, 9, 9, 9, 9, 0, 1, 3, 0}
	critical := []byte{1, 2, 0x80, 1, 9, 9, 9, 9}
	vni, key := []byte{0, 0, 7, 0}, []byte{0, 0, 0, 7}
	field := make([]byte, 4)
	tests := []struct {
		name string
		kind Kind
		b    []byte
		want Reason
	}{
		{"plain", KindGeneve, geneve(teb, nil, inner), None},
		{"reserved bits set", KindGeneve, geneve([4]byte{0, 0x3f, 0x65, 0x58}, nil, inner), None},
		{"options", KindGeneve, geneve([4]byte{3, 0, 0x65, 0x58}, options, inner), None},
		{"smallest inner frame", KindGeneve, geneve(teb, nil, inner[:14]), None},
		{"empty", KindGeneve, nil, Short},
		{"7 bytes", KindGeneve, geneve(teb, nil, nil)[:7], Short},
		{"version 1", KindGeneve, geneve([4]byte{0x40, 0, 0x65, 0x58}, nil, inner), Version},
		{"Opt Len beyond the packet", KindGeneve, geneve([4]byte{0x3f, 0, 0x65, 0x58}, nil, inner), HeaderLength},
		{"control message", KindGeneve, geneve([4]byte{0, 0x80, 0x65, 0x58}, nil, inner), Control},
		{"IPv4 payload", KindGeneve, geneve([4]byte{0, 0, 8, 0}, nil, inner), Protocol},
		{"option beyond the options", KindGeneve, geneve([4]byte{1, 0, 0x65, 0x58}, []byte{1, 2, 3, 1}, inner), OptionLength},
		{"second option beyond the options", KindGeneve, geneve([4]byte{3, 0, 0x65, 0x58}, append(options[:8:8], 1, 2, 3, 31), inner), OptionLength},
		{"critical option", KindGeneve, geneve([4]byte{2, 0x40, 0x65, 0x58}, critical, inner), CriticalOption},
		{"critical option without C", KindGeneve, geneve([4]byte{2, 0, 0x65, 0x58}, critical, inner), CriticalOption},
		{"inner frame of 13 bytes", KindGeneve, geneve(teb, nil, inner[:13]), Inner},

		{"plain", KindVXLAN, slices.Concat([]byte{8, 0, 0, 0}, vni, inner), None},
		{"reserved bits set", KindVXLAN, slices.Concat([]byte{0xff, 1, 2, 3}, []byte{0, 0, 7, 9}, inner), None},
		{"smallest inner frame", KindVXLAN, slices.Concat([]byte{8, 0, 0, 0}, vni, inner[:14]), None},
		{"empty", KindVXLAN, nil, Short},
		{"7 bytes", KindVXLAN, []byte{8, 0, 0, 0, 0, 0, 7}, Short},
		{"without I", KindVXLAN, slices.Concat([]byte{0xf7, 0, 0, 0}, vni, inner), NoVNI},
		{"inner frame of 13 bytes", KindVXLAN, slices.Concat([]byte{8, 0, 0, 0}, vni, inner[:13]), Inner},

		{"key", KindGRE, gre(0x2000, 0x6558, key, inner), None},
		{"reserved bits set", KindGRE, gre(0x23f8, 0x6558, key, inner), None},
		{"all optional fields", KindGRE, sum(gre(0xb000, 0x6558, field, key, field, inner)), None},
		{"smallest inner frame", KindGRE, gre(0x2000, 0x6558, key, inner[:14]), None},
		{"empty", KindGRE, nil, Short},
		{"3 bytes", KindGRE, gre(0, 0x6558)[:3], Short},
		{"version 1", KindGRE, gre(0x2001, 0x880b, key, inner), Version},
		{"routing", KindGRE, gre(0x6000, 0x6558, key, inner), Routing},
		{"strict source route", KindGRE, gre(0x2800, 0x6558, key, inner), Routing},
		{"recursion", KindGRE, gre(0x2400, 0x6558, key, inner), Routing},
		{"key beyond the packet", KindGRE, gre(0x2000, 0x6558, key[:3]), HeaderLength},
		{"sequence number beyond the packet", KindGRE, gre(0xb000, 0x6558, field, key, field[:3]), HeaderLength},
		{"IPv4 payload", KindGRE, gre(0x2000, 0x0800, key, inner), Protocol},
		{"wrong checksum", KindGRE, gre(0xa000, 0x6558, field, key, inner), Checksum},
		{"inner frame of 13 bytes", KindGRE, gre(0x2000, 0x6558, key, inner[:13]), Inner},
	}
	produced := map[Reason]bool{}
	for _, tt := range tests {
		t.Run(tt.kind.String()+"/"+tt.name, func(t *testing.T) {
			b, vni, got := tt.kind.Unwrap(tt.b)
			produced[got] = true
			switch {
			case got != tt.want:
				t.Errorf("Unwrap says %v, want %v", got, tt.want)
			case got == None && (vni != 7 || !bytes.HasPrefix(inner, b) || len(b) < 14):
				t.Errorf("VNI %d, inner %x", vni, b)
			case got != None && (b != nil || vni != 0):
				t.Error("something came of a refused datagram")
			}
		})
	}
	for r := None; r <= Inner; r++ {
		if !produced[r] {
			t.Errorf("no case ends in %q", r)
		}
	}
}

// Without a key a GRE packet is of network 0, as with Linux and Open vSwitch.
func TestGREWithoutKey(t *testing.T) {
	inner := pt.TCP4(pt.Options{})
	for _, b := range [][]byte{gre(0, 0x6558, inner), gre(0x1000, 0x6558, []byte{0, 0, 0, 9}, inner)} {
		if got, key, why := KindGRE.Unwrap(b); why != None || key != 0 || !bytes.Equal(got, inner) {
			t.Errorf("key %d, %v, inner %x", key, why, got)
		}
	}
}

// TestInitAgainstGopacket has another parser read what Init writes.
func TestInitAgainstGopacket(t *testing.T) {
	inner := pt.TCP4(pt.Options{Payload: []byte("through the tunnel")})
	read := map[Kind]func(b []byte) (vni uint32, payload []byte, plain bool){
		KindGeneve: func(b []byte) (uint32, []byte, bool) {
			p := gopacket.NewPacket(b, layers.LayerTypeGeneve, gopacket.Default)
			g := p.Layer(layers.LayerTypeGeneve).(*layers.Geneve)
			return g.VNI, g.Payload, g.Version == 0 && g.Protocol == packet.EtherTypeTEB && !g.OAMPacket && len(g.Options) == 0
		},
		KindVXLAN: func(b []byte) (uint32, []byte, bool) {
			p := gopacket.NewPacket(b, layers.LayerTypeVXLAN, gopacket.Default)
			v := p.Layer(layers.LayerTypeVXLAN).(*layers.VXLAN)
			return v.VNI, v.Payload, v.ValidIDFlag && !v.GBPExtension
		},
		KindGRE: func(b []byte) (uint32, []byte, bool) {
			p := gopacket.NewPacket(b, layers.LayerTypeGRE, gopacket.Default)
			g := p.Layer(layers.LayerTypeGRE).(*layers.GRE)
			return g.Key, g.Payload, g.Protocol == packet.EtherTypeTEB && g.KeyPresent && !g.ChecksumPresent && !g.SeqPresent && !g.RoutingPresent && g.Version == 0
		},
	}
	for kind := range numKinds {
		b := bytes.Repeat([]byte{0xff}, HeaderLen)
		kind.Init(b, 0xabcdef)
		b = append(b, inner...)
		if vni, payload, plain := read[kind](b); vni != 0xabcdef || !plain || !bytes.Equal(payload, inner) {
			t.Errorf("%v: VNI %#x, plain %v, inner %x", kind, vni, plain, payload)
		}
		if got, vni, why := kind.Unwrap(b); why != None || vni != 0xabcdef || !bytes.Equal(got, inner) {
			t.Errorf("%v: Unwrap of it: VNI %d, %v", kind, vni, why)
		}
	}
}

func TestKinds(t *testing.T) {
	for kind := range numKinds {
		if k, ok := KindNamed(kind.String()); !ok || k != kind {
			t.Errorf("%q names %v, %v", kind.String(), k, ok)
		}
	}
	if _, ok := KindNamed("stt"); ok {
		t.Error("stt has a kind")
	}
	for _, c := range []struct {
		kind     Kind
		v6       bool
		overhead int
	}{{KindGeneve, false, 50}, {KindGeneve, true, 70}, {KindVXLAN, false, 50}, {KindVXLAN, true, 70}, {KindGRE, false, 42}, {KindGRE, true, 62}} {
		if got := c.kind.Overhead(c.v6); got != c.overhead {
			t.Errorf("%v, IPv6 %v: %d bytes, want %d", c.kind, c.v6, got, c.overhead)
		}
	}
}

func hashOf(inner []byte) uint32 {
	l := packet.ParseLayers(inner)
	return FlowHash(inner, &l)
}

func TestFlowHash(t *testing.T) {
	seen := map[uint32]int{}
	for i := range 4096 {
		seen[hashOf(pt.TCP4(pt.Options{SrcPort: 1024 + uint16(i)}))%(1<<14)]++
	}
	// 4096 balls in 16384 bins fill about 3620 of them.
	if len(seen) < 3400 {
		t.Errorf("4096 flows share %d of 16384 values", len(seen))
	}
	a := pt.UDP4(pt.Options{Payload: []byte("a")})
	b := pt.UDP4(pt.Options{Payload: []byte("other"), ID: 9, TTL: 3})
	if hashOf(a) != hashOf(b) {
		t.Error("two packets of one flow differ")
	}
	first := pt.UDP4(pt.Options{FlagsOffset: packet.IPv4MoreFragments})
	later := pt.UDP4(pt.Options{FlagsOffset: 185})
	if hashOf(first) != hashOf(later) {
		t.Error("fragments of one packet differ")
	}
	hashOf(nil)
	hashOf(first[:13])
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

func FuzzUnwrap(f *testing.F) {
	inner := pt.TCP4(pt.Options{})
	for kind := range uint8(numKinds) {
		b := make([]byte, HeaderLen)
		Kind(kind).Init(b, 7)
		f.Add(kind, append(b, inner...))
	}
	f.Add(uint8(KindGeneve), geneve([4]byte{3, 0, 0x65, 0x58}, []byte{1, 2, 0x7f, 1, 9, 9, 9, 9, 0, 1, 3, 0}, inner))
	f.Add(uint8(KindGeneve), geneve([4]byte{2, 0x40, 0x65, 0x58}, []byte{1, 2, 0x80, 1, 9, 9, 9, 9}, inner))
	f.Add(uint8(KindGRE), sum(gre(0xb000, 0x6558, make([]byte, 12), inner)))
	f.Fuzz(func(t *testing.T, kind uint8, b []byte) {
		k := Kind(kind) % numKinds
		inner, vni, why := k.Unwrap(b)
		switch {
		case why >= NumReasons:
			t.Errorf("reason %d", why)
		case why != None && (inner != nil || vni != 0):
			t.Errorf("refused (%v), but something came of it", why)
		case why == None && (!bytes.HasSuffix(b, inner) || len(inner) < packet.EthernetLen):
			t.Errorf("inner frame %x of %x", inner, b)
		case vni>>24 != 0 && k != KindGRE:
			t.Errorf("VNI %#x has more than 24 bits", vni)
		}
		if why == None {
			k.Trace(b)
		}
		same, network, options, other := k.UnwrapOptions(b)
		if other != why && why != CriticalOption || why == None && (!bytes.Equal(same, inner) || network != vni) {
			t.Errorf("%v with options, %v without", other, why)
		}
		if other == None && k == KindGeneve && len(same)+len(options) > 0 {
			again := make([]byte, HeaderLen+len(options))
			Geneve(again).InitOptions(network, packet.TunnelOptions(options))
			if _, n, o, why := k.UnwrapOptions(append(again, same...)); why != None || n != network || string(o) != string(options) {
				t.Errorf("options %x come back as %x in network %d, %v", options, o, n, why)
			}
		}
	})
}

// TestUnwrapOptions: a receiver that looks at options gets them all, and the id of a watched walk apart.
// A header with a critical option has the C bit.
func TestUnwrapOptions(t *testing.T) {
	inner := pt.TCP4(pt.Options{})
	plain, critical := []byte{1, 2, 0x7f, 1, 9, 9, 9, 9}, []byte{1, 2, 0x80, 0}
	traced := make([]byte, HeaderLen+TraceLen)
	Geneve(traced).InitTraced(7, 5)
	for _, tt := range []struct {
		name    string
		b       []byte
		options []byte
		want    Reason
	}{
		{"none", geneve([4]byte{0, 0, 0x65, 0x58}, nil, inner), nil, None},
		{"a critical one", geneve([4]byte{3, 0x40, 0x65, 0x58}, slices.Concat(plain, critical), inner), slices.Concat(plain, critical), None},
		{"one beyond the options", geneve([4]byte{1, 0, 0x65, 0x58}, []byte{1, 2, 3, 1}, inner), nil, OptionLength},
		{"inner frame of 13 bytes", geneve([4]byte{1, 0, 0x65, 0x58}, critical, inner[:13]), nil, Inner},
		{"the id of a walk", append(traced, inner...), nil, None},
	} {
		b, vni, o, why := KindGeneve.UnwrapOptions(tt.b)
		if why != tt.want || !bytes.Equal(o, tt.options) || why == None && (vni != 7 || !bytes.Equal(b, inner)) {
			t.Errorf("%s: %v, options %x, want %v, %x", tt.name, why, o, tt.want, tt.options)
		}
	}
	b := make([]byte, HeaderLen+8)
	if Geneve(b).InitOptions(7, packet.TunnelOptions(plain)); b[1] != 0 {
		t.Errorf("%x", b)
	}
	if Geneve(b).InitOptions(7, packet.TunnelOptions(critical)); b[1] != 0x40 || b[0] != 1 {
		t.Errorf("%x", b)
	}
}

func BenchmarkFlowHash(b *testing.B) {
	inner := pt.TCP4(pt.Options{})
	l := packet.ParseLayers(inner)
	b.ReportAllocs()
	for b.Loop() {
		FlowHash(inner, &l)
	}
}
