package pipeline

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/bench/rig"
	"github.com/antrail/antrail/bench/workload"
)

// scripted is a contender whose samples are known beforehand.
type scripted struct {
	base, of []sample // the last one is repeated
	turns    []string
	known    int
}

func (s *scripted) makeKnown(_ context.Context, known []*workload.Packets) error {
	s.known = len(known)
	return nil
}

func (s *scripted) installEntries(context.Context, []string, bool) (installTime, error) {
	return installTime{}, nil
}

func (s *scripted) removeInstalled(context.Context) error { return nil }

func (s *scripted) takeSample(_ context.Context, c *workload.Packets, base bool, _ time.Duration) (sample, error) {
	from := &s.of
	s.turns = append(s.turns, c.Name)
	if base {
		from = &s.base
		s.turns[len(s.turns)-1] = "base"
	}
	k := (*from)[0]
	if len(*from) > 1 {
		*from = (*from)[1:]
	}
	if k == lost {
		return sample{}, errLost
	}
	return k, nil
}

// lost is a sample whose packets were lost.
var lost = sample{nanoseconds: -1}

// TestMeasureKinds checks that only undisturbed samples count.
func TestMeasureKinds(t *testing.T) {
	quiet, noisy := sample{nanoseconds: 300, entries: 16}, sample{nanoseconds: 9000, disturbed: 0.5}
	s := &scripted{base: []sample{{nanoseconds: 100}}, of: []sample{noisy, quiet, lost, quiet}}
	m, err := measureKinds(t.Context(), s, []*workload.Packets{{Name: "known", Connections: 1}}, samplePlan{samplesOfRound, time.Millisecond, time.Now().Add(time.Hour)})
	if err != nil || s.known != 1 {
		t.Fatalf("%v, %d kinds made known", err, s.known)
	}
	if got := m.alone(0); got != 200 {
		t.Errorf("%v ns, want 200", got)
	}
	want := []rig.Reading{{Name: "known", Unit: "ns", Value: 200}, {Name: "windows thrown away", Unit: "windows", Value: 2}, {Name: "disturbed windows that were needed", Unit: "windows", Value: 0}}
	if got := m.aloneReadings(); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := strings.Join(s.turns[:4], " "); got != "base known base known" {
		t.Errorf("the samples came as %s", got)
	}
}

// TestNoFigure: a measurement has no figure if all its samples are disturbed. It has none if
// the single entry costs more.
func TestNoFigure(t *testing.T) {
	for name, s := range map[string]*scripted{
		"disturbed":       {base: []sample{{nanoseconds: 100}}, of: []sample{{nanoseconds: 300, disturbed: 0.5}}},
		"dearer for one":  {base: []sample{{nanoseconds: 400}}, of: []sample{{nanoseconds: 300}}},
		"single is noisy": {base: []sample{{nanoseconds: 100, disturbed: 0.9}}, of: []sample{{nanoseconds: 300}}},
	} {
		m, err := measureKinds(t.Context(), s, []*workload.Packets{{Name: "fresh"}}, samplePlan{samplesOfRound, time.Millisecond, time.Now().Add(time.Hour)})
		if err != nil || !math.IsNaN(m.alone(0)) {
			t.Errorf("%s: %v, %v", name, m.alone(0), err)
		}
	}
}

// TestLostSamples checks that lost samples are replaced only while there is time, unless a kind has no
// usable sample yet.
func TestLostSamples(t *testing.T) {
	quiet := sample{nanoseconds: 300}
	for name, c := range map[string]struct {
		of    []sample
		until time.Time
		want  int // samples of the kind
		cost  float64
	}{
		"one is there, no time": {[]sample{quiet, lost, lost, lost}, time.Time{}, samplesOfRound, 200},
		"one is there, time":    {[]sample{quiet, lost, lost, lost}, time.Now().Add(time.Hour), mostSamples * samplesOfRound, 200},
		"the ninth, no time":    {[]sample{lost, lost, lost, lost, lost, lost, lost, lost, quiet}, time.Time{}, 9, 200},
		"none, no time":         {[]sample{lost}, time.Time{}, mostSamplesInNeed * samplesOfRound, math.NaN()},
		"none, time":            {[]sample{lost}, time.Now().Add(time.Hour), mostSamplesInNeed * samplesOfRound, math.NaN()},
	} {
		s := &scripted{base: []sample{{nanoseconds: 100}}, of: c.of}
		m, err := measureKinds(t.Context(), s, []*workload.Packets{{Name: "known", Connections: 1}}, samplePlan{samplesOfRound, time.Millisecond, c.until})
		if err != nil || len(s.turns) != 2*c.want {
			t.Errorf("%s: %v, %d samples, want %d", name, err, len(s.turns)/2, c.want)
		}
		if got := m.alone(0); got != c.cost && !(math.IsNaN(got) && math.IsNaN(c.cost)) {
			t.Errorf("%s: %v ns, want %v", name, got, c.cost)
		}
	}
}
