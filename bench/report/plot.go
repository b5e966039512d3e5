package report

import (
	"cmp"
	"fmt"
	"html"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Plots are SVG: bars for figures, curves for sweeps. Background, text and lines follow the reader's
// choice of light or dark. The background is drawn, since the page around a plot may not follow it.

const (
	plotWidth  = 760
	plotMargin = 16
	labelWidth = 190 // of the contenders' names before the bars
	barHeight  = 15
	valueWidth = 215 // of figures behind the bars
	panelWidth = 560 // of curves
	panelTall  = 200
	// labelHeight is how far names behind curves are apart.
	labelHeight = 14
)

// colours tell contenders apart on a light and on a dark background, for colour-blind readers too.
var colours = []string{"#5588cc", "#ee7733", "#009988", "#cc3377", "#999933", "#33bbee", "#aa7755", "#888888"}

func colour(side int) string { return colours[side%len(colours)] }

const plotStyle = `<style>
text{font:12px system-ui,sans-serif;fill:#222}.t{font-weight:600;font-size:14px}.s{fill:#555}.p{fill:#fff}.g{stroke:#999;stroke-width:.5;opacity:.6}.w{stroke:#222}.b{font-weight:600;fill:#c33}
@media(prefers-color-scheme:dark){text{fill:#ddd}.s{fill:#aaa}.p{fill:#222}.w{stroke:#ddd}}
</style>
<rect class="p" width="100%" height="100%"/>
`

// plot collects an SVG. Its height is known at the end.
type plot struct {
	strings.Builder
	y float64 // lower edge of the drawing so far
}

func (p *plot) text(x, y float64, class, anchor, text string) {
	fmt.Fprintf(p, `<text x="%.1f" y="%.1f" class="%s" text-anchor="%s">%s</text>`+"\n", x, y, class, anchor, html.EscapeString(text))
}

// Plot writes the comparison as SVG.
//
// A figure has a bar for each side, from 0, with the extremes as a line. A sweep has a curve for each
// side on logarithmic axes. Figures that only one of several sides has are left out. If there is a
// single side, the figures of one unit stand together. A grid has a column for each side.
func (c *Comparison) Plot(w io.Writer) error {
	p := &plot{y: plotMargin + 14}
	p.text(plotMargin, p.y, "t", "start", c.Title)
	p.y += 18
	p.text(plotMargin, p.y, "s", "start", c.Machine)
	if c.Warning != "" {
		p.y += 18
		p.text(plotMargin, p.y, "b", "start", c.Warning)
	}
	p.y += 14
	switch {
	case c.Grid:
		p.drawGrid(c.Sides, c.Lines)
	case len(c.Sides) == 1:
		p.drawSingle(c.Lines)
	default:
		p.drawCompared(c)
	}
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %.0f" width="%d" role="img" aria-label="%s">`+"\n%s%s</svg>\n",
		plotWidth, p.y+plotMargin, plotWidth, html.EscapeString(c.Title), plotStyle, p.String())
	return err
}

// drawCompared draws the figures of several sides.
func (p *plot) drawCompared(c *Comparison) {
	for _, curve := range c.curves() {
		if c.plotted(curve.lines...) {
			p.drawPanel(c, curve)
		}
	}
	for _, l := range c.Lines {
		if l.X == 0 && c.plotted(l) {
			p.drawBars(c.Sides, &l)
		}
	}
}

// plotted says whether lines of one name are drawn. They compare sides, if there are several, and tell
// what was found rather than how the measurement went.
func (c *Comparison) plotted(lines ...Line) bool {
	return slices.ContainsFunc(lines, func(l Line) bool {
		have := 0
		for _, s := range l.Reached {
			if s != nil {
				have++
			}
		}
		return l.Unit != SamplesUnit && have >= min(2, len(c.Sides))
	})
}

// drawBars draws one figure: a bar for each side that has it.
func (p *plot) drawBars(sides []string, l *Line) {
	longest := 0.0
	for _, s := range l.Reached {
		if s != nil {
			longest = max(longest, s.Max)
		}
	}
	if longest <= 0 {
		return
	}
	p.y += 22
	p.text(plotMargin, p.y, "", "start", l.Name+", "+l.Unit+better(l.Name, l.Unit))
	p.y += 6
	const x = plotMargin + labelWidth
	scale := (plotWidth - 2*plotMargin - labelWidth - valueWidth) / longest
	for i, s := range l.Reached {
		if s != nil {
			p.drawBar(x, sides[i], colour(i), s, scale)
		}
	}
}

// drawBar draws a bar from x on, with its name before it.
func (p *plot) drawBar(x float64, name, colour string, s *Spread, scale float64) {
	middle := p.y + barHeight/2.0
	p.text(x-6, middle+4, "s", "end", name)
	fmt.Fprintf(p, `<rect x="%.0f" y="%.1f" width="%.1f" height="%d" fill="%s"/>`+"\n", x, p.y+1, max(s.Median*scale, 1), barHeight-3, colour)
	fmt.Fprintf(p, `<path class="w" d="M%.1f %.1fH%.1f"/>`+"\n", x+s.Min*scale, middle-0.5, x+s.Max*scale)
	p.text(x+s.Max*scale+6, middle+4, "s", "start", s.String())
	p.y += barHeight
}

// curve is the lines of a sweep with one name.
type curve struct {
	name  string
	lines []Line // by X
}

// curves are the comparison's sweeps.
func (c *Comparison) curves() (list []curve) {
	for _, l := range c.Lines {
		if l.X == 0 {
			continue
		}
		name := l.Name + ", " + l.Unit + better(l.Name, l.Unit)
		i := slices.IndexFunc(list, func(have curve) bool { return have.name == name })
		if i < 0 {
			i, list = len(list), append(list, curve{name: name})
		}
		list[i].lines = append(list[i].lines, l)
	}
	return list
}

// axis maps a range of values to places, logarithmically.
type axis struct{ low, high, from, to float64 }

// at is the place of a value; values below the axis are at its low end.
func (a axis) at(v float64) float64 {
	return a.from + (math.Log10(max(v, a.low))-math.Log10(a.low))/(math.Log10(a.high)-math.Log10(a.low))*(a.to-a.from)
}

// decades returns an axis that holds the values, from one power of ten to another.
func decades(values []float64, from, to float64) axis {
	low, high := slices.Min(values), slices.Max(values)
	low, high = math.Pow(10, math.Floor(math.Log10(low))), math.Pow(10, math.Ceil(math.Log10(high)))
	if low == high {
		high = 10 * low
	}
	return axis{low, high, from, to}
}

// axes returns the axes of a curve. ok is false if no figure is above 0.
func (c *curve) axes(top float64) (x, y axis, ok bool) {
	var xs, ys []float64
	for _, l := range c.lines {
		for _, s := range l.Reached {
			if s != nil && s.Median > 0 && l.X > 0 {
				xs, ys = append(xs, l.X), append(ys, s.Median, s.Max)
				if s.Min > 0 {
					ys = append(ys, s.Min)
				}
			}
		}
	}
	if len(xs) == 0 {
		return x, y, false
	}
	return decades(xs, plotMargin+50, plotMargin+panelWidth), decades(ys, top+panelTall, top), true
}

// drawPanel draws the curves of a sweep.
func (p *plot) drawPanel(c *Comparison, of curve) {
	p.y += 22
	x, y, ok := of.axes(p.y + 10)
	if !ok {
		return
	}
	p.text(plotMargin, p.y, "", "start", of.name)
	p.text(x.to+36, y.from+16, "s", "start", c.Axis)
	for v := x.low; v <= x.high*1.001; v *= 10 {
		fmt.Fprintf(p, `<path class="g" d="M%.1f %.1fV%.1f"/>`+"\n", x.at(v), y.from, y.to)
		p.text(x.at(v), y.from+16, "s", "middle", thousands(v))
	}
	for v := y.low; v <= y.high*1.001; v *= 10 {
		fmt.Fprintf(p, `<path class="g" d="M%.1f %.1fH%.1f"/>`+"\n", x.from, y.at(v), x.to)
		p.text(x.from-6, y.at(v)+4, "s", "end", thousands(v))
	}
	var ends []end
	for i, name := range c.Sides {
		if e, ok := p.drawCurve(i, of.lines, x, y); ok {
			e.name = name
			ends = append(ends, e)
		}
	}
	p.drawNames(ends)
	p.y = y.from + 24
}

// thousands writes a power of ten with commas between thousands.
func thousands(v float64) string {
	if v < 1 {
		return strconv.FormatFloat(v, 'g', 1, 64)
	}
	text := strconv.FormatFloat(v, 'f', 0, 64)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// end is the last point of a side's curve.
type end struct {
	x, y         float64
	name, colour string
}

// drawCurve draws one side's curve, with the extremes at each point, and returns its end. ok is false
// if the side has no points.
func (p *plot) drawCurve(side int, lines []Line, x, y axis) (e end, ok bool) {
	var path strings.Builder
	command := "M"
	e.colour = colour(side)
	for _, l := range lines {
		if side >= len(l.Reached) || l.Reached[side] == nil {
			continue
		}
		s := l.Reached[side]
		e.x, e.y = x.at(l.X), y.at(s.Median)
		fmt.Fprintf(&path, "%s%.1f %.1f", command, e.x, e.y)
		fmt.Fprintf(p, `<path d="M%.1f %.1fV%.1f" stroke="%s"/>`+"\n", e.x, y.at(s.Min), y.at(s.Max), e.colour)
		fmt.Fprintf(p, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", e.x, e.y, e.colour)
		command = "L"
	}
	if command == "M" {
		return e, false
	}
	fmt.Fprintf(p, `<path d="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n", path.String(), e.colour)
	return e, true
}

// drawNames writes the sides' names behind the ends of their curves. If ends are close, one name is
// below the other.
func (p *plot) drawNames(ends []end) {
	slices.SortFunc(ends, func(a, b end) int { return cmp.Compare(a.y, b.y) })
	next := 0.0
	for _, e := range ends {
		y := max(e.y+4, next)
		fmt.Fprintf(p, `<text x="%.1f" y="%.1f" style="fill:%s">%s</text>`+"\n", e.x+8, y, e.colour, html.EscapeString(e.name))
		next = y + labelHeight
	}
}
