package report

import (
	"cmp"
	"fmt"
	"html"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// Trend is what one profile found in several runs, the oldest first.
type Trend struct {
	Profile, Title string
	Runs           []string // a label for each run: a version, or a commit
	Lines          []TrendLine
}

// TrendLine is one kind of figure of all sides, run by run.
type TrendLine struct {
	Name, Unit string
	X          float64 // as in Line
	Sides      []TrendSide
}

// TrendSide is one side's figures. Reached has an element for each run; nil for a run without this figure.
type TrendSide struct {
	Name    string
	Reached []*Spread
}

// Trends are the trends of all profiles of runs, in the order in which profiles and figures appear first. labels has
// one for each run. How a measurement went (SamplesUnit) is left out.
func Trends(labels []string, runs [][]*Comparison) (all []*Trend) {
	for run, comparisons := range runs {
		for _, c := range comparisons {
			at := slices.IndexFunc(all, func(t *Trend) bool { return t.Profile == c.Profile })
			if at < 0 {
				at, all = len(all), append(all, &Trend{Profile: c.Profile, Title: c.Title, Runs: labels})
			}
			for _, l := range c.Lines {
				if l.Unit != SamplesUnit {
					all[at].addRun(run, c.Sides, &l)
				}
			}
		}
	}
	return all
}

// addRun adds a run's line.
func (t *Trend) addRun(run int, sides []string, l *Line) {
	line := slices.IndexFunc(t.Lines, func(have TrendLine) bool { return have.Name == l.Name && have.Unit == l.Unit && have.X == l.X })
	if line < 0 {
		line, t.Lines = len(t.Lines), append(t.Lines, TrendLine{Name: l.Name, Unit: l.Unit, X: l.X})
	}
	to := &t.Lines[line]
	for i, s := range l.Reached {
		if s == nil {
			continue
		}
		side := slices.IndexFunc(to.Sides, func(have TrendSide) bool { return have.Name == sides[i] })
		if side < 0 {
			side, to.Sides = len(to.Sides), append(to.Sides, TrendSide{sides[i], make([]*Spread, len(t.Runs))})
		}
		to.Sides[side].Reached[run] = s
	}
}

// change is the last figure beside the first one; a dash if there is only one.
func (s *TrendSide) change() string {
	var have []*Spread
	for _, r := range s.Reached {
		if r != nil {
			have = append(have, r)
		}
	}
	if len(have) < 2 || have[0].Median == 0 {
		return "-"
	}
	return fmt.Sprintf("%+.0f %%", 100*(have[len(have)-1].Median/have[0].Median-1))
}

// Write writes the medians as a table: a line for each figure of each side, a column for each run.
func (t *Trend) Write(w io.Writer) error {
	fmt.Fprintf(w, "%s: %s\n", t.Profile, t.Title)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "FIGURE\tUNIT\tSIDE\t%s\tCHANGE\n", strings.Join(t.Runs, "\t"))
	for i := range t.Lines {
		l := &t.Lines[i]
		label := (&Line{Name: l.Name, X: l.X}).label()
		for _, s := range l.Sides {
			fmt.Fprintf(table, "%s\t%s\t%s", label, l.Unit, s.Name)
			for _, r := range s.Reached {
				if r == nil {
					fmt.Fprint(table, "\t-")
					continue
				}
				fmt.Fprintf(table, "\t%s", digits(r.Median))
			}
			fmt.Fprintf(table, "\t%s\n", s.change())
		}
	}
	return table.Flush()
}

// Sizes of a trend's plot.
const (
	trendTall  = 110 // of a panel
	trendLeft  = 60  // of the figures before a panel
	trendRight = 170 // of the sides' names behind it
)

// Plot writes the trend as SVG: a panel for each figure, from 0, with a curve for each side.
func (t *Trend) Plot(w io.Writer) error {
	p := &plot{y: plotMargin + 14}
	p.text(plotMargin, p.y, "t", "start", t.Title)
	p.y += 10
	for i := range t.Lines {
		p.drawTrend(t.Runs, &t.Lines[i])
	}
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %.0f" width="%d" role="img" aria-label="%s">`+"\n%s%s</svg>\n",
		plotWidth, p.y+plotMargin, plotWidth, html.EscapeString(t.Title), plotStyle, p.String())
	return err
}

// drawTrend draws one panel.
func (p *plot) drawTrend(runs []string, l *TrendLine) {
	most := 0.0
	for _, s := range l.Sides {
		for _, r := range s.Reached {
			if r != nil {
				most = max(most, r.Max)
			}
		}
	}
	if most <= 0 {
		return
	}
	p.y += 24
	p.text(plotMargin, p.y, "", "start", (&Line{Name: l.Name, X: l.X}).label()+", "+l.Unit+better(l.Name, l.Unit))
	top, bottom := p.y+10, p.y+10+trendTall
	left, right := float64(plotMargin+trendLeft), float64(plotWidth-plotMargin-trendRight)
	x := func(run int) float64 { return left + (right-left)*float64(run)/float64(max(1, len(runs)-1)) }
	y := func(v float64) float64 { return bottom - (bottom-top)*v/most }
	for _, v := range []float64{0, most} {
		fmt.Fprintf(p, `<path class="g" d="M%.1f %.1fH%.1f"/>`+"\n", left, y(v), right)
	}
	p.text(left-6, bottom+4, "s", "end", "0")
	p.text(left-6, top+4, "s", "end", digits(most))
	p.nameRuns(runs, x, bottom+18)
	for i, s := range l.Sides {
		p.drawRuns(s.Reached, colour(i), x, y)
	}
	p.nameSides(l.Sides, right+10, top, y)
	p.y = bottom + 24
}

// Of labels below a panel.
const (
	letterWidth  = 7  // about, at the size of labels
	longestLabel = 24 // letters
)

// nameRuns writes the runs' labels below a panel, within its width: the first, the last,
// and those between for which there is room.
func (p *plot) nameRuns(runs []string, x func(int) float64, at float64) {
	width := func(label string) float64 { return letterWidth * float64(len([]rune(label))) }
	last := len(runs) - 1
	free := x(0)
	for run, label := range runs {
		label = shorten(label, longestLabel)
		from, anchor := x(run)-width(label)/2, "middle"
		switch {
		case run == 0:
			from, anchor = x(0), "start"
		case run == last:
			from, anchor = x(last)-width(label), "end"
		}
		if room := x(last) - width(shorten(runs[last], longestLabel)); run == last || from >= free && (last == 0 || from+width(label)+letterWidth <= room) {
			p.text(x(run), at, "s", anchor, label)
			free = from + width(label) + letterWidth
		}
	}
}

// shorten cuts a text that has more letters, and marks the cut.
func shorten(text string, letters int) string {
	if all := []rune(text); len(all) > letters {
		return string(all[:letters-1]) + "…"
	}
	return text
}

// drawRuns draws a side's medians, with their extremes as lines. A run without the figure breaks no curve.
func (p *plot) drawRuns(reached []*Spread, colour string, x func(int) float64, y func(float64) float64) {
	path, begin := "", "M"
	for run, r := range reached {
		if r == nil {
			continue
		}
		path += fmt.Sprintf("%s%.1f %.1f", begin, x(run), y(r.Median))
		begin = "L"
		fmt.Fprintf(p, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", x(run), y(r.Median), colour)
		fmt.Fprintf(p, `<path stroke="%s" d="M%.1f %.1fV%.1f"/>`+"\n", colour, x(run), y(r.Min), y(r.Max))
	}
	fmt.Fprintf(p, `<path fill="none" stroke="%s" stroke-width="1.5" d="%s"/>`+"\n", colour, path)
}

// nameSides writes the sides' names behind their last figures, apart from each other.
func (p *plot) nameSides(sides []TrendSide, x, top float64, y func(float64) float64) {
	type named struct {
		at   float64
		side int
	}
	var all []named
	for i, s := range sides {
		for _, r := range slices.Backward(s.Reached) {
			if r != nil {
				all = append(all, named{y(r.Median), i})
				break
			}
		}
	}
	slices.SortStableFunc(all, func(a, b named) int { return cmp.Compare(a.at, b.at) })
	free := top
	for _, n := range all {
		at := max(n.at, free)
		free = at + labelHeight
		fmt.Fprintf(p, `<rect x="%.1f" y="%.1f" width="8" height="8" fill="%s"/>`+"\n", x, at-4, colour(n.side))
		p.text(x+12, at+4, "s", "start", sides[n.side].Name)
	}
}
