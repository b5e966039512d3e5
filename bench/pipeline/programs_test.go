package pipeline

import (
	"testing"
	"time"

	"github.com/antrail/antrail/bench/testbed"
	"github.com/antrail/antrail/bench/workload"
	"github.com/antrail/antrail/tables/programs"
)

// TestOtherPrograms measures each program beside Antrea's. The switch fails unless all packets arrive,
// and each packet takes an entry of each table that it has to pass.
func TestOtherPrograms(t *testing.T) {
	want := map[string]map[string]float64{
		"uplink":            {"known connection": 9, "new connection": 9, "known connection to a ClusterIP": 9, "first packet to a ClusterIP": 10},
		"windows2020":       {"known connection": 10, "new connection": 10, "known connection to a ClusterIP": 10, "first packet to a ClusterIP": 10},
		"external Node":     {"known connection": 12, "new connection": 16},
		"networkPolicyOnly": {"known connection": 18, "new connection": 26},
		"vppl3":             {"known connection": 5, "new connection": 5, "known connection to a ClusterIP": 5, "first packet to a ClusterIP": 5},
	}
	loads, err := workload.OtherPrograms()
	if err != nil {
		t.Fatal(err)
	}
	const forms = 2 // of Antrea's own program
	if names := programs.Names(); len(loads) != len(names)+forms || len(want) != len(loads) {
		t.Errorf("%d programs are measured, there are %v", len(loads), names)
	}
	for _, l := range loads {
		t.Run(l.Name, func(t *testing.T) { entriesOf(t, l, want[l.Name]) })
	}
}

func entriesOf(t *testing.T, l workload.ProgramLoad, want map[string]float64) {
	t.Helper()
	w, err := openAntrail(l.Program, testbed.SwitchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	w.program.countEntries = true
	m, err := measureKinds(t.Context(), w, l.Kinds, samplePlan{samplesOfRound, time.Millisecond, time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range l.Kinds {
		for _, s := range m.samples[i].kept {
			if s.entries != want[c.ShortName()] {
				t.Errorf("a packet of %s takes %v entries, want %v", c.ShortName(), s.entries, want[c.ShortName()])
			}
		}
	}
}
