package bench

import (
	"fmt"
	"io"
	"unicode/utf8"

	"golang.org/x/perf/benchmath"
)

// Compare writes how the figures of b differ from those of a: for each that
// both have, the medians with their confidence intervals, the change, and the
// probability that it is chance, by the Mann-Whitney U test, as benchstat tells
// them. A change that may be chance (p of 0.05 or more) is shown as ~. What tells
// how the measurement went is left out.
func Compare(w io.Writer, a, b *Result) error {
	fmt.Fprintf(w, "a: %s\nb: %s\n", a.heading(), b.heading())
	if a.Machine.String() != b.Machine.String() {
		fmt.Fprintln(w, "The machines differ: a change may be theirs.")
	}
	figures, changed := 0, 0
	for _, c := range a.Comparisons {
		for _, d := range b.Comparisons {
			if c.Profile != d.Profile {
				continue
			}
			rows, sure := compareProfile(c, d)
			writeRows(w, append([]changeRow{{c.Profile, "", "unit", "a", "b", "change"}}, rows...))
			figures += len(rows)
			changed += sure
		}
	}
	if figures == 0 {
		return fmt.Errorf("bench: the two results have no figure in common")
	}
	fmt.Fprintf(w, "\n%d of %d figures changed by more than chance explains (p below 0.05); ~ may be chance. Of so many, about %.0f seem to change when nothing has.\n",
		changed, figures, 0.05*float64(figures))
	return nil
}

// heading is when and where a result was taken, and what disturbed it.
func (r *Result) heading() string {
	return fmt.Sprintf("%s, %s; others took %.0f %% of the processors before and %.0f %% after",
		r.Began.Format("2006-01-02 15:04"), r.Machine, 100*r.Machine.Foreign, 100*r.ForeignAfter)
}

// changeRow is a figure of both: name, side, unit, a, b, change.
type changeRow [6]string

// writeRows writes rows as wide as they have to be, the first as their head, when
// there are others.
func writeRows(w io.Writer, rows []changeRow) {
	if len(rows) < 2 {
		return
	}
	var wide changeRowWidths
	for _, row := range rows {
		for i, cell := range row {
			wide[i] = max(wide[i], utf8.RuneCountInString(cell))
		}
	}
	fmt.Fprintln(w)
	for _, r := range rows {
		fmt.Fprintf(w, "%-*s  %-*s  %-*s  %*s  %*s  %s\n", wide[0], r[0], wide[1], r[1], wide[2], r[2], wide[3], r[3], wide[4], r[4], r[5])
	}
}

type changeRowWidths [len(changeRow{})]int

// compareProfile is the figures that two runs of a profile have in common, and
// how many of them changed.
func compareProfile(a, b *Comparison) (rows []changeRow, changed int) {
	for _, l := range a.Lines {
		for i, s := range l.Reached {
			t := b.find(&l, a.Sides[i])
			if l.Unit == windowsUnit || s == nil || t == nil || len(s.Values) == 0 || len(t.Values) == 0 {
				continue
			}
			row, sure := change(s.Values, t.Values)
			rows = append(rows, changeRow{l.label(), a.Sides[i], l.Unit, row[0], row[1], row[2]})
			if sure {
				changed++
			}
		}
	}
	return rows, changed
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

// change is both medians with their intervals and the difference, and whether it
// is more than chance.
func change(a, b []float64) (cells [3]string, sure bool) {
	thresholds := benchmath.DefaultThresholds
	sa, sb := benchmath.NewSample(a, &thresholds), benchmath.NewSample(b, &thresholds)
	ma, mb := benchmath.AssumeNothing.Summary(sa, confidence), benchmath.AssumeNothing.Summary(sb, confidence)
	diff := benchmath.AssumeNothing.Compare(sa, sb)
	return [3]string{interval(ma), interval(mb), diff.FormatDelta(ma.Center, mb.Center) + " (" + diff.String() + ")"}, diff.P < thresholds.CompareAlpha
}

func interval(s benchmath.Summary) string { return digits(s.Center) + " ± " + s.PctRangeString() }
