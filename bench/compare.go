package bench

import (
	"fmt"
	"io"

	"golang.org/x/perf/benchmath"
)

// Compare writes how the figures of b differ from those of a: for each that
// both have, the medians with their confidence intervals, the change, and the
// probability that it is chance, by the Mann-Whitney U test, as benchstat tells
// them. A change that may be chance (p of 0.05 or more) is shown as ~.
func Compare(w io.Writer, a, b *Result) error {
	fmt.Fprintf(w, "a: %s, %s\nb: %s, %s\n", a.Began.Format("2006-01-02 15:04"), a.Machine, b.Began.Format("2006-01-02 15:04"), b.Machine)
	common := 0
	for _, c := range a.Comparisons {
		for _, d := range b.Comparisons {
			if c.Profile == d.Profile {
				common += compareProfile(w, c, d)
			}
		}
	}
	if common == 0 {
		return fmt.Errorf("bench: the two results have no figure in common")
	}
	return nil
}

// compareProfile writes the figures that two runs of a profile have in common,
// and returns how many.
func compareProfile(w io.Writer, a, b *Comparison) (common int) {
	for _, l := range a.Lines {
		for i, s := range l.Reached {
			t := b.find(&l, a.Sides[i])
			if s == nil || t == nil || len(s.Values) == 0 || len(t.Values) == 0 {
				continue
			}
			if common++; common == 1 {
				fmt.Fprintf(w, "\n%-32s %-22s %-8s %18s %18s\n", a.Profile, "", "unit", "a", "b")
			}
			fmt.Fprintf(w, "%-32s %-22s %-8s %s\n", l.label(), a.Sides[i], l.Unit, change(s.Values, t.Values))
		}
	}
	return common
}

// find is a side's figure of the same name, unit and X; nil when there is none.
func (c *Comparison) find(like *Line, side string) *Spread {
	for _, l := range c.Lines {
		if l.Name != like.Name || l.Unit != like.Unit || l.X != like.X {
			continue
		}
		for i, s := range l.Reached {
			if c.Sides[i] == side {
				return s
			}
		}
	}
	return nil
}

// confidence is that of the intervals.
const confidence = 0.95

// change is both medians with their intervals, and the difference.
func change(a, b []float64) string {
	thresholds := benchmath.DefaultThresholds
	sa, sb := benchmath.NewSample(a, &thresholds), benchmath.NewSample(b, &thresholds)
	ma, mb := benchmath.AssumeNothing.Summary(sa, confidence), benchmath.AssumeNothing.Summary(sb, confidence)
	diff := benchmath.AssumeNothing.Compare(sa, sb)
	return fmt.Sprintf("%18s %18s %10s (%s)", interval(ma), interval(mb), diff.FormatDelta(ma.Center, mb.Center), diff)
}

func interval(s benchmath.Summary) string { return digits(s.Center) + " ± " + s.PctRangeString() }
