package report

import (
	"fmt"
	"io"
	"unicode/utf8"

	"golang.org/x/perf/benchmath"
)

// changeRow is a figure that both runs have: name, side, unit, the two medians, the change.
type changeRow [6]string

// writeRows writes rows in aligned columns. The first is the head; alone it is not written.
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

// changeRowWidths is the width of each column, in characters.
type changeRowWidths [len(changeRow{})]int

// WriteChanges writes how the figures of other, a second run of the profile, differ from those of c.
// It writes the medians with their confidence intervals, the change, and the probability p that the
// change is chance (Mann-Whitney U test). A change with p of 0.05 or more is shown as ~. It returns
// how many figures both have, and how many of them changed.
func (c *Comparison) WriteChanges(w io.Writer, other *Comparison) (figures, changed int) {
	rows, changed := compareFigures(c, other)
	writeRows(w, append([]changeRow{{c.Profile, "", "unit", "a", "b", "change"}}, rows...))
	return len(rows), changed
}

// compareFigures returns a row for each figure that two runs of a profile have in common, and how
// many of them changed.
func compareFigures(a, b *Comparison) (rows []changeRow, changed int) {
	for _, l := range a.Lines {
		for i, s := range l.Reached {
			t := b.findFigure(&l, a.Sides[i])
			if l.Unit == SamplesUnit || s == nil || t == nil || len(s.Values) == 0 || len(t.Values) == 0 {
				continue
			}
			row, sure := describeChange(s.Values, t.Values)
			rows = append(rows, changeRow{l.label(), a.Sides[i], l.Unit, row[0], row[1], row[2]})
			if sure {
				changed++
			}
		}
	}
	return rows, changed
}

// findFigure returns a side's figure with the name, unit and X of like; nil if there is none.
func (c *Comparison) findFigure(like *Line, side string) *Spread {
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

// confidence is the level of the confidence intervals.
const confidence = 0.95

// describeChange returns both medians with their intervals and the difference. sure says that the
// difference is more than chance explains.
func describeChange(a, b []float64) (cells [3]string, sure bool) {
	thresholds := benchmath.DefaultThresholds
	sa, sb := benchmath.NewSample(a, &thresholds), benchmath.NewSample(b, &thresholds)
	ma, mb := benchmath.AssumeNothing.Summary(sa, confidence), benchmath.AssumeNothing.Summary(sb, confidence)
	diff := benchmath.AssumeNothing.Compare(sa, sb)
	return [3]string{interval(ma), interval(mb), diff.FormatDelta(ma.Center, mb.Center) + " (" + diff.String() + ")"}, diff.P < thresholds.CompareAlpha
}

// interval is a median with its confidence interval in percent.
func interval(s benchmath.Summary) string { return digits(s.Center) + " ± " + s.PctRangeString() }
