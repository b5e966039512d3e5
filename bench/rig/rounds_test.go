package rig

import (
	"context"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/bench/report"
)

// TestRunSweep checks that two sides take turns, that each begins rounds, and their lines and ratios.
func TestRunSweep(t *testing.T) {
	var turns []string
	fake := func(name string, values ...float64) *Side {
		return &Side{Name: name, Measure: func(context.Context) ([]Reading, error) {
			v := values[0]
			values = values[1:]
			turns = append(turns, name)
			return []Reading{{Name: "speed", Unit: "m/s", Value: v}}, nil
		}}
	}
	r := &Rig{Options: Options{Rounds: 3}, Progress: io.Discard, Until: time.Now()}
	var c report.Comparison
	if err := r.RunSweep(t.Context(), &c, []Point{{X: 7, Sides: []*Side{fake("a", 1, 2, 4), fake("b", 2, 2, 2)}}}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(turns, ""); got != "abbaab" {
		t.Errorf("turns %s", got)
	}
	l := c.Lines[0]
	if a, b := l.Reached[0], l.Reached[1]; l.X != 7 || a.Median != 2 || a.Ratio != 0 || b.Ratio != 1 || !slices.Equal(a.Values, []float64{1, 2, 4}) {
		t.Errorf("line %+v: %+v, %+v", l, a, b)
	}
	failing := &Side{Name: "bad", Measure: func(context.Context) ([]Reading, error) { return nil, errors.New("torn") }}
	if err := r.RunRounds(t.Context(), &c, []*Side{failing}); err == nil || !strings.Contains(err.Error(), "bad: torn") {
		t.Errorf("%v", err)
	}
}

// TestRunSweepKeepsRounds checks that the figures of whole rounds stay when a later one fails, and that
// each round tells how much a figure grew.
func TestRunSweepKeepsRounds(t *testing.T) {
	of := func(values ...float64) *Side {
		return &Side{Name: "a", Measure: func(context.Context) ([]Reading, error) {
			if len(values) == 0 {
				return nil, errors.New("torn")
			}
			v := values[0]
			values = values[1:]
			return []Reading{{Name: "cost", Unit: "ns", Value: v}, {Name: "thrown", Unit: report.SamplesUnit, Value: 1}}, nil
		}}
	}
	var said strings.Builder
	r := &Rig{Options: Options{Rounds: 3}, Progress: &said}
	var c report.Comparison
	err := r.RunSweep(t.Context(), &c, []Point{{X: 10, Sides: []*Side{of(10, 20)}}, {X: 100, Sides: []*Side{of(11, 30)}}})
	if err == nil || !strings.Contains(err.Error(), "round 3: a at 10: torn") {
		t.Errorf("%v", err)
	}
	if len(c.Lines) != 5 || !slices.Equal(c.Lines[2].Reached[0].Values, []float64{11, 30}) {
		t.Fatalf("%+v", c.Lines)
	}
	if l := c.Lines[4]; l.Name != "cost, over that at 10" || l.X != 100 || !slices.Equal(l.Reached[0].Values, []float64{1.1, 1.5}) {
		t.Errorf("%+v: %v", l, l.Reached[0])
	}
	b := Summary{}
	b.AddSide("a")
	b.Add("a", 0, []Reading{{Name: "x", Unit: "ns", Value: math.NaN()}})
	if !b.Lines()[0].Empty() || slices.ContainsFunc(c.Lines, report.Line.Empty) {
		t.Errorf("known and unknown: %+v, %+v", b.Lines()[0], c.Lines)
	}
	if !slices.Contains(c.Notes, "Rounds: 2.") || !strings.Contains(said.String(), "a at 100\n") {
		t.Errorf("%q, %s", c.Notes, said.String())
	}
}

// TestContenders checks that contenders that the options leave out are not measured.
func TestContenders(t *testing.T) {
	var turns []string
	var sides []*Side
	for _, name := range []string{"Linux bridge", "antrail offload", "antrail afxdp"} {
		sides = append(sides, &Side{Name: name, Measure: func(context.Context) ([]Reading, error) {
			turns = append(turns, name)
			return []Reading{{Name: "speed", Unit: "m/s", Value: 1}}, nil
		}})
	}
	r := &Rig{Options: Options{Rounds: 1, Contenders: []string{"OFFLOAD", "bridge"}}, Progress: io.Discard, Until: time.Now()}
	var c report.Comparison
	if err := r.RunRounds(t.Context(), &c, sides); err != nil {
		t.Fatal(err)
	}
	if want := []string{"Linux bridge", "antrail offload"}; !slices.Equal(turns, want) || !slices.Equal(c.Sides, want) {
		t.Errorf("%q were measured, %q are told, want %q", turns, c.Sides, want)
	}
	if r.Wants("direct veth") {
		t.Error("direct veth takes part")
	}
	r.Contenders = []string{"tortoise"}
	if err := r.RunRounds(t.Context(), &c, sides); err == nil || err.Error() != "no contender is tortoise; there are antrail afxdp, direct veth, Linux bridge, antrail offload" {
		t.Errorf("nobody takes part: %v", err)
	}
}

// TestAnotherRound checks that a round begins if it ends in time, or if fewer than asked for were run.
func TestAnotherRound(t *testing.T) {
	r := &Rig{Until: time.Now().Add(time.Hour)}
	for _, c := range []struct {
		rounds, requested int
		longest           time.Duration
		want              bool
	}{{1, 0, time.Minute, true}, {1, 0, 2 * time.Hour, false}, {1, 2, 2 * time.Hour, true}, {mostRounds, 0, 0, false}, {mostRounds, mostRounds + 1, 0, true}} {
		r.Rounds = c.requested
		if got := r.another(c.rounds, c.longest); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
