package tunnel

import (
	"bytes"
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

func TestUnwrap(t *testing.T) {
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
			b, vni, got := Unwrap(tt.b)
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

func TestInitAgainstGopacket(t *testing.T) {
	inner := pt.TCP4(pt.Options{Payload: []byte("through the tunnel")})
	h := make(Geneve, GeneveLen)
	h.Init(0xabcdef)
	p := gopacket.NewPacket(append(h, inner...), layers.LayerTypeGeneve, gopacket.Default)
	g := p.Layer(layers.LayerTypeGeneve).(*layers.Geneve)
	if g.Version != 0 || g.VNI != 0xabcdef || g.Protocol != packet.EtherTypeTEB || g.OAMPacket || len(g.Options) != 0 {
		t.Errorf("Geneve %+v", g)
	}
	if !bytes.Equal(g.Payload, inner) {
		t.Errorf("inner frame changed:\n got %x\nwant %x", g.Payload, inner)
	}
	if b, vni, why := Unwrap(append(h, inner...)); why != None || vni != 0xabcdef || !bytes.Equal(b, inner) {
		t.Errorf("Unwrap of it: VNI %d, %v", vni, why)
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
	f.Add(geneve([4]byte{0, 0, 0x65, 0x58}, nil, inner))
	f.Add(geneve([4]byte{3, 0, 0x65, 0x58}, []byte{1, 2, 0x7f, 1, 9, 9, 9, 9, 0, 1, 3, 0}, inner))
	f.Add(geneve([4]byte{2, 0x40, 0x65, 0x58}, []byte{1, 2, 0x80, 1, 9, 9, 9, 9}, inner))
	f.Fuzz(func(t *testing.T, b []byte) {
		inner, vni, why := Unwrap(b)
		switch {
		case why != None && (inner != nil || vni != 0):
			t.Errorf("refused (%v), but something came of it", why)
		case why == None && (!bytes.HasSuffix(b, inner) || len(inner) < packet.EthernetLen):
			t.Errorf("inner frame %x of %x", inner, b)
		case vni>>24 != 0:
			t.Errorf("VNI %#x has more than 24 bits", vni)
		}
	})
}

func BenchmarkFlowHash(b *testing.B) {
	inner := pt.TCP4(pt.Options{})
	l := packet.ParseLayers(inner)
	b.ReportAllocs()
	for b.Loop() {
		FlowHash(inner, &l)
	}
}
