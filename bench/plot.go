package bench

import (
	"fmt"
	"html"
	"io"
	"math"
	"slices"
	"strings"
)

// Plots are SVG, drawn here because there is so little to draw: bars for
// figures, curves for sweeps. Colours of text and lines follow the reader's
// light or dark page.

const (
	plotWidth  = 760
	plotMargin = 16
	labelWidth = 190 // of contenders' names beside their bars
	barHeight  = 15
	valueWidth = 170 // of figures behind the bars
	panelWidth = 560 // of curves
	panelTall  = 200
)

// colours tell contenders apart on light and on dark ground, and without
// seeing red and green.
var colours = []string{"#4477aa", "#ee7733", "#009988", "#cc3377", "#999933", "#33bbee", "#aa7755", "#888888"}

func colour(side int) string { return colours[side%len(colours)] }

const plotStyle = `<style>
text{font:12px system-ui,sans-serif;fill:#222}.t{font-weight:600;font-size:14px}.s{fill:#666}.g{stroke:#999;stroke-width:.5;opacity:.6}.w{stroke:#222}
@media(prefers-color-scheme:dark){text{fill:#ddd}.s{fill:#aaa}.w{stroke:#ddd}}
</style>
`

// plot gathers an SVG whose height is known at the end.
type plot struct {
	strings.Builder
	y float64 // how far down it is drawn
}

func (p *plot) text(x, y float64, class, anchor, text string) {
	fmt.Fprintf(p, `<text x="%.1f" y="%.1f" class="%s" text-anchor="%s">%s</text>`+"\n", x, y, class, anchor, html.EscapeString(text))
}

// Plot writes the comparison as SVG: bars for each figure, from 0, with the
// extremes as a line; and a curve for each side over what a sweep varies, with
// both axes logarithmic.
func (c *Comparison) Plot(w io.Writer) error {
	p := &plot{y: plotMargin + 14}
	p.text(plotMargin, p.y, "t", "start", c.Title)
	p.y += 18
	p.text(plotMargin, p.y, "s", "start", c.Machine)
	p.y += 14
	for _, curve := range c.curves() {
		p.panel(c.Sides, curve)
	}
	for _, l := range c.Lines {
		if l.X == 0 {
			p.bars(c.Sides, &l)
		}
	}
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %.0f" width="%d" role="img" aria-label="%s">`+"\n%s%s</svg>\n",
		plotWidth, p.y+plotMargin, plotWidth, html.EscapeString(c.Title), plotStyle, p.String())
	return err
}

// bars draws one figure: a bar for each side that has it.
func (p *plot) bars(sides []string, l *Line) {
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
	p.text(plotMargin, p.y, "", "start", l.Name+", "+l.Unit)
	p.y += 6
	scale := (plotWidth - 2*plotMargin - labelWidth - valueWidth) / longest
	for i, s := range l.Reached {
		if s != nil {
			p.bar(sides[i], colour(i), s, scale)
		}
	}
}

func (p *plot) bar(name, colour string, s *Spread, scale float64) {
	const x = plotMargin + labelWidth
	middle := p.y + barHeight/2.0
	p.text(x-6, middle+4, "s", "end", name)
	fmt.Fprintf(p, `<rect x="%d" y="%.1f" width="%.1f" height="%d" fill="%s"/>`+"\n", x, p.y+1, max(s.Median*scale, 1), barHeight-3, colour)
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
		name := l.Name + ", " + l.Unit
		i := slices.IndexFunc(list, func(have curve) bool { return have.name == name })
		if i < 0 {
			i, list = len(list), append(list, curve{name: name})
		}
		list[i].lines = append(list[i].lines, l)
	}
	return list
}

// axis maps a logarithmic range to places.
type axis struct{ low, high, from, to float64 }

func (a axis) at(v float64) float64 {
	return a.from + (math.Log10(max(v, a.low))-math.Log10(a.low))/(math.Log10(a.high)-math.Log10(a.low))*(a.to-a.from)
}

// decades is an axis that holds the values, from one power of ten to another.
func decades(values []float64, from, to float64) axis {
	low, high := slices.Min(values), slices.Max(values)
	low, high = math.Pow(10, math.Floor(math.Log10(low))), math.Pow(10, math.Ceil(math.Log10(high)))
	if low == high {
		high = 10 * low
	}
	return axis{low, high, from, to}
}

// axes are those of a curve; there are none when no figure is above 0.
func (c *curve) axes(top float64) (x, y axis, ok bool) {
	var xs, ys []float64
	for _, l := range c.lines {
		for _, s := range l.Reached {
			if s != nil && s.Median > 0 && l.X > 0 {
				xs, ys = append(xs, l.X), append(ys, s.Median)
			}
		}
	}
	if len(xs) == 0 {
		return x, y, false
	}
	return decades(xs, plotMargin+50, plotMargin+panelWidth), decades(ys, top+panelTall, top), true
}

// panel draws the curves of a sweep.
func (p *plot) panel(sides []string, c curve) {
	p.y += 22
	x, y, ok := c.axes(p.y + 10)
	if !ok {
		return
	}
	p.text(plotMargin, p.y, "", "start", c.name)
	for v := x.low; v <= x.high*1.001; v *= 10 {
		fmt.Fprintf(p, `<path class="g" d="M%.1f %.1fV%.1f"/>`+"\n", x.at(v), y.from, y.to)
		p.text(x.at(v), y.from+16, "s", "middle", digits(v))
	}
	for v := y.low; v <= y.high*1.001; v *= 10 {
		fmt.Fprintf(p, `<path class="g" d="M%.1f %.1fH%.1f"/>`+"\n", x.from, y.at(v), x.to)
		p.text(x.from-6, y.at(v)+4, "s", "end", digits(v))
	}
	for i, name := range sides {
		p.curve(i, name, c.lines, x, y)
	}
	p.y = y.from + 22
}

// curve draws one side's line, with its name behind the last point.
func (p *plot) curve(side int, name string, lines []Line, x, y axis) {
	var path strings.Builder
	command := "M"
	lastX, lastY := 0.0, 0.0
	for _, l := range lines {
		if side >= len(l.Reached) || l.Reached[side] == nil {
			continue
		}
		s := l.Reached[side]
		lastX, lastY = x.at(l.X), y.at(s.Median)
		fmt.Fprintf(&path, "%s%.1f %.1f", command, lastX, lastY)
		fmt.Fprintf(p, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", lastX, lastY, colour(side))
		command = "L"
	}
	if command == "L" {
		fmt.Fprintf(p, `<path d="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n", path.String(), colour(side))
		fmt.Fprintf(p, `<text x="%.1f" y="%.1f" fill="%s" style="fill:%[3]s">%s</text>`+"\n", lastX+6, lastY+4, colour(side), html.EscapeString(name))
	}
}
