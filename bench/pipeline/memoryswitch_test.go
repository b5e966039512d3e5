package pipeline

import (
	"bytes"
	"math"
	"testing"
	"time"

	"github.com/antrail/antrail/bench/testbed"
	"github.com/antrail/antrail/bench/workload"
	"github.com/antrail/antrail/packet"
)

// leaves sends the first packet and returns the frame that leaves by the receiver's port.
func (w *memorySwitch) leaves(t *testing.T, c *workload.Packets) []byte {
	t.Helper()
	if err := w.portOf(c).Send(c.Frame); err != nil {
		t.Fatal(err)
	}
	w.sw.Poll()
	n := w.out.Collect(w.collected)
	defer packet.Release(w.collected[:n])
	if n != 1 {
		t.Fatalf("%s: %d frames left", c.Name, n)
	}
	return bytes.Clone(w.collected[0].Bytes())
}

// TestServiceProgram measures packets to ClusterIPs. The switch fails unless all of them arrive.
func TestServiceProgram(t *testing.T) {
	p, err := workload.ServiceProgram(10)
	if err != nil {
		t.Fatal(err)
	}
	w, err := openAntrail(p, testbed.SwitchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	w.program.countEntries = true
	many := workload.ManyConnections() // freshCourse has connections of the same numbers
	many.Connections = 1000
	kinds := []*workload.Packets{workload.KnownConnection(), workload.KnownToService(), many, workload.NewConnections(), workload.NewToService(), workload.NewToAffinityService(), workload.KnownHairpin(), workload.NewHairpins()}
	m, err := measureKinds(t.Context(), w, kinds, samplePlan{samplesOfRound, time.Millisecond, time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	if len(m.samples) != len(kinds) || len(m.aloneReadings()) != len(kinds)+2 {
		t.Errorf("%d kinds, %v", len(m.samples), m.aloneReadings())
	}
	for i, c := range kinds {
		for _, k := range m.samples[i].kept {
			if first := m.samples[i].kept[0].entries; first < 1 || math.Abs(k.entries-first) > 1 {
				t.Errorf("%s: %v entries a packet in one sample, %v in another", c.Name, first, k.entries)
			}
		}
	}
}
