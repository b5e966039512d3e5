package pipeline

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/bench/report"
	"github.com/antrail/antrail/bench/rig"
	"github.com/antrail/antrail/bench/workload"
)

// TestTables checks that each table that a packet visits has a cost, that they add up to the whole, and
// that notes name tables without packets and kinds without figures.
func TestTables(t *testing.T) {
	p, err := workload.ServiceProgram(1)
	if err != nil {
		t.Fatal(err)
	}
	b, err := openTableTimes(p)
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	kinds := []*workload.Packets{workload.KnownConnection(), workload.NewToService()}
	for _, name := range []string{kinds[0].ShortName(), kinds[1].ShortName(), "never undisturbed"} {
		b.summary.AddSide(name)
	}
	quiet := func(l report.Line) bool { return l.Name == allTables && l.Reached[0] != nil && l.Reached[1] != nil }
	for range 100 { // until there was a moment with the processor to itself
		if err := b.measureRound(t.Context(), kinds, samplePlan{samplesOfTables, 10 * time.Millisecond, time.Now()}); err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(b.summary.Lines(), quiet) {
			break
		}
	}
	c := b.comparison("a machine")
	reached := func(name string) []*report.Spread {
		i := slices.IndexFunc(c.Lines, func(l report.Line) bool { return l.Name == name })
		if i < 0 {
			t.Fatalf("no line %s: %+v", name, c.Lines)
		}
		return c.Lines[i].Reached
	}
	if s := reached("ServiceLB"); s[0] != nil || s[1] == nil {
		t.Errorf("a known connection is in ServiceLB, or a first packet is not: %v", s)
	}
	if s := reached("ConntrackZone"); s[0] == nil || s[1] == nil || s[1].Ratio != 0 {
		t.Errorf("ConntrackZone: %v", s)
	}
	sum := reached(allLookups)[1].Median + reached(allActions)[1].Median
	if got := reached(allTables)[1]; got.Rounds == 1 && math.Abs(got.Median-sum) > 1 {
		t.Errorf("all tables take %v, lookups and actions %v", got.Median, sum)
	}
	if note := strings.Join(c.Notes, " "); !strings.Contains(note, "in 31 tables") || !strings.Contains(note, "ARPResponder (ARP only)") || !strings.Contains(note, rig.MissingNote) {
		t.Errorf("the notes are %s", note)
	}
}
