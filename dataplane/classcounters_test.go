package dataplane_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/flow"
)

// byTable is an entry's class in these tests: its table.
func byTable(e *flow.Entry) int { return int(e.Table) }

// wantClassCounters compares sums of classes with those over a dump.
func (r *rig) wantClassCounters(s *dataplane.ClassCounters) {
	r.Helper()
	var want []dataplane.ClassSum
	for _, f := range r.sw.Flows() {
		for len(want) <= byTable(f.Entry) {
			want = append(want, dataplane.ClassSum{})
		}
		want[f.Entry.Table].Entries++
		want[f.Entry.Table].Packets += f.Packets
	}
	got, ok := s.Sum()
	if got = slices.Clone(got); !ok {
		r.Error("the sums are of another pipeline")
	}
	for len(got) > len(want) && got[len(got)-1] == (dataplane.ClassSum{}) {
		got = got[:len(got)-1]
	}
	if !slices.Equal(got, want) {
		r.Errorf("sums %v, the dump has %v", got, want)
	}
}

// TestClassCounters are those of a dump, while packets come, learned entries come and
// expire; with another pipeline they are not good any more.
func TestClassCounters(t *testing.T) {
	r := newAffinityRig(t, "hard_timeout=100")
	s := r.sw.ClassCounters(byTable)
	r.wantClassCounters(s)
	for i := range 5 {
		r.send(strings.Replace(anyTCP, "10.0.0.1", "10.0.0."+string(rune('1'+i)), 1))
		r.send(anyTCP)
		r.wantClassCounters(s)
	}
	r.wantLearned(5)
	r.warp(101 * time.Second)
	r.wantLearned(0)
	r.wantClassCounters(s)
	if n := testing.AllocsPerRun(20, func() { s.Sum() }); n != 0 {
		t.Errorf("a look allocates %v times", n)
	}
	r.check(r.sw.Apply(&flow.Bundle{Delete: []*flow.Entry{r.sw.Flows()[0].Entry}}))
	if _, ok := s.Sum(); ok {
		t.Error("the sums of a pipeline that is gone are good")
	}
	r.wantClassCounters(r.sw.ClassCounters(byTable))
}
