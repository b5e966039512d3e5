package tunnel

import (
	"testing"

	pt "github.com/antrail/antrail/packet/packettest"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

// TestTraceOption writes an id, and reads it again: as ours, and as gopacket does.
func TestTraceOption(t *testing.T) {
	const id = 0x0123456789abcdef
	inner := pt.TCP4(pt.Options{})
	h := make(Geneve, HeaderLen+TraceLen)
	h.InitTraced(7, id)
	b := append(h, inner...)
	if got, vni, why := KindGeneve.Unwrap(b); why != None || vni != 7 || string(got) != string(inner) {
		t.Errorf("VNI %d, %v", vni, why)
	}
	if got := KindGeneve.Trace(b); got != id {
		t.Errorf("id %x", got)
	}
	g := gopacket.NewPacket(b, layers.LayerTypeGeneve, gopacket.Default).Layer(layers.LayerTypeGeneve).(*layers.Geneve)
	if len(g.Options) != 1 || g.Options[0].Class < 0xff00 || g.Options[0].Type&0x80 != 0 || g.CriticalOption {
		t.Errorf("%+v is no experimental option that may be passed over", g.Options)
	}
}

// TestTraceOfOthers finds no id where there is none, and one among other options.
func TestTraceOfOthers(t *testing.T) {
	inner, teb := pt.TCP4(pt.Options{}), [4]byte{0, 0, 0x65, 0x58}
	own := []byte{0xff, 0xa7, 1, 2, 0, 0, 0, 9, 0, 0, 0, 1}
	with := func(words byte, options ...byte) []byte { return geneve([4]byte{words, 0, 0x65, 0x58}, options, inner) }
	for name, c := range map[string]struct {
		b    []byte
		want uint64
	}{
		"no option":     {geneve(teb, nil, inner), 0},
		"another class": {with(3, 0xff, 0xa8, 1, 2, 0, 0, 0, 9, 0, 0, 0, 1), 0},
		"another type":  {with(3, 0xff, 0xa7, 2, 2, 0, 0, 0, 9, 0, 0, 0, 1), 0},
		"too short":     {with(2, 0xff, 0xa7, 1, 1, 0, 0, 0, 9), 0},
		"the second":    {with(5, append([]byte{0, 1, 2, 1, 0, 0, 0, 0}, own...)...), 9<<32 | 1},
	} {
		if _, _, why := KindGeneve.Unwrap(c.b); why != None {
			t.Errorf("%s: %v", name, why)
		}
		if got := KindGeneve.Trace(c.b); got != c.want {
			t.Errorf("%s: id %x, want %x", name, got, c.want)
		}
	}
	if KindVXLAN.Trace(geneve(teb, nil, inner)) != 0 || KindGRE.CarriesTrace() {
		t.Error("other kinds carry an id")
	}
}
