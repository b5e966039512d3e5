package answer

import (
	"context"
	"fmt"
	"net/netip"
	"testing"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/packet"
	pt "github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/trace"
)

// newRehearsal is both Nodes of the sample, and what its client-b sends to web-b.
func newRehearsal(t *testing.T) (*Rehearsal, pt.Options) {
	t.Helper()
	r, err := Rehearse("../../examples/web-app", "node-a", "node-b")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r, pt.Options{
		EthSrc: [6]byte{0x5e, 0xb5, 0xe3, 0xa6, 0x91, 0xb7}, EthDst: [6]byte{0xfa, 0xb7, 0x53, 0x74, 0x22, 0xa6},
		Src: netip.MustParseAddr("10.10.1.7"), Dst: netip.MustParseAddr("10.10.1.6"), SrcPort: 1234, DstPort: 80, TCPFlags: packet.TCPSyn,
	}
}

// TestMapCounts: what packets did is on the map: each way has as many packets as
// went it, each table as many as it took, and drops are those of the switch.
func TestMapCounts(t *testing.T) {
	r, o := newRehearsal(t)
	edges, tables, dropped := map[[2]uint8]uint64{}, map[uint8]uint64{}, map[uint8]uint64{}
	for i, port := range []uint16{80, 80, 22, 22, 22} {
		o.SrcPort, o.DstPort = uint16(2000+i), port
		way, _, err := r.Send("node-b", "client-b", pt.TCP4(o))
		if err != nil || len(way) != 1 {
			t.Fatalf("%d walks, %v", len(way), err)
		}
		hops, denied := api.HopsOf(way[0])
		if denied != (port == 22) {
			t.Errorf("port %d: dropped %t", port, denied)
		}
		for k, h := range hops {
			tables[h.To]++
			if k > 0 {
				edges[[2]uint8{h.From, h.To}]++
			}
		}
		if denied {
			dropped[hops[len(hops)-1].To]++
		}
	}
	m, err := r.Client("node-b").Map(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range m.Tables {
		if x.Packets != tables[x.ID] || x.Dropped != dropped[x.ID] {
			t.Errorf("%s: %d packets, %d dropped, want %d, %d", x.Name, x.Packets, x.Dropped, tables[x.ID], dropped[x.ID])
		}
	}
	ways := 0
	for _, e := range m.Edges {
		if n := edges[[2]uint8{e.From, e.To}]; n > 0 && e.Packets < n {
			t.Errorf("%+v: %d packets went there", e, n)
		} else if n > 0 {
			ways++
		}
	}
	if ways < 15 || len(dropped) != 1 {
		t.Errorf("%d ways were gone, %d tables dropped", ways, len(dropped))
	}
}

// TestRehearsalIsTheSameTwice: nothing is left to chance or to the clock.
func TestRehearsalIsTheSameTwice(t *testing.T) {
	var texts [2]string
	for i := range texts {
		r, o := newRehearsal(t)
		o.Dst, o.EthDst = netip.MustParseAddr("10.105.31.235"), [6]byte{0xba, 0x5e, 0xd1, 0x55, 0xab, 0xc0}
		for n := range 20 {
			o.SrcPort = uint16(3000 + n)
			way, left, err := r.Send("node-b", "client-b", pt.TCP4(o))
			if err != nil || len(left) != 1 {
				t.Fatalf("left %d times, %v", len(left), err)
			}
			w := way[0]
			texts[i] += fmt.Sprintf("%s %s %s %s %x\n", w.ID, w.Time, trace.Summary(left[0].Frame), w.Verdict.Text, left[0].Frame)
		}
	}
	if texts[0] != texts[1] {
		t.Errorf("once:\n%s\nand again:\n%s", texts[0], texts[1])
	}
}
