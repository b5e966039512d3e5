package report

import (
	"cmp"
	"fmt"
	"slices"
)

// Plots without contenders: a grid with a column for each side, and the figures of a single side.

const (
	gridLabel = 168 // width of the rows' names
	gridValue = 34  // width of a cell's figure
	// Bars of a single side begin behind their names and end before their figures.
	singleFrom = plotMargin + 330
	singleTo   = plotWidth - plotMargin - 170
)

// drawGrid draws a row for each line and a column for each side. The bars have one scale. Each has its
// extremes, and its median behind them.
func (p *plot) drawGrid(sides []string, lines []Line) {
	lines = slices.DeleteFunc(slices.Clone(lines), func(l Line) bool { return l.Sum })
	longest := 0.0
	for _, l := range lines {
		for _, s := range l.Reached {
			if s != nil {
				longest = max(longest, s.Max)
			}
		}
	}
	if longest <= 0 {
		return
	}
	p.drawKey(sides, lines[0].Unit)
	wide := float64(plotWidth-2*plotMargin-gridLabel) / float64(len(sides))
	top := p.y
	for _, l := range lines {
		p.text(plotMargin+gridLabel-6, p.y+barHeight/2.0+4, "s", "end", l.Name)
		for i, s := range l.Reached {
			if s != nil {
				p.drawCell(plotMargin+gridLabel+float64(i)*wide, colour(i), s, (wide-gridValue)/longest)
			}
		}
		p.y += barHeight
	}
	for i := range sides {
		fmt.Fprintf(p, `<path class="g" d="M%.1f %.1fV%.1f"/>`+"\n", plotMargin+gridLabel+float64(i)*wide, top, p.y)
	}
}

// drawCell draws the bar of a cell from x on.
func (p *plot) drawCell(x float64, colour string, s *Spread, scale float64) {
	middle := p.y + barHeight/2.0
	fmt.Fprintf(p, `<rect x="%.1f" y="%.1f" width="%.1f" height="%d" fill="%s"/>`+"\n", x, p.y+1, max(s.Median*scale, 1), barHeight-3, colour)
	fmt.Fprintf(p, `<path class="w" d="M%.1f %.1fH%.1f"/>`+"\n", x+s.Min*scale, middle-0.5, x+s.Max*scale)
	p.text(x+s.Max*scale+4, middle+4, "s", "start", fmt.Sprintf("%.0f", s.Median))
}

// drawKey names the columns, one to a line, since names are longer than columns.
func (p *plot) drawKey(sides []string, unit string) {
	p.y += 10
	for i, name := range sides {
		fmt.Fprintf(p, `<rect x="%d" y="%.1f" width="10" height="10" fill="%s"/>`+"\n", plotMargin, p.y, colour(i))
		p.text(plotMargin+16, p.y+9, "", "start", name+", "+unit+better(name, unit))
		p.y += barHeight
	}
	p.y += 8
}

// drawSingle draws the figures of one side. Those of a unit stand together, on one scale.
func (p *plot) drawSingle(lines []Line) {
	var units []string
	for _, l := range lines {
		if l.Unit != SamplesUnit && !slices.Contains(units, l.Unit) && l.Reached[0] != nil && l.Reached[0].Max > 0 {
			units = append(units, l.Unit)
		}
	}
	for i, unit := range units {
		its := slices.DeleteFunc(slices.Clone(lines), func(l Line) bool { return l.Unit != unit || l.Reached[0] == nil })
		p.y += 22
		p.text(plotMargin, p.y, "", "start", unit+betterOfAll(its))
		p.y += 6
		if x, wide := singleAxis(its); wide {
			p.drawPoints(its, x, colour(i))
			continue
		}
		longest := slices.MaxFunc(its, func(a, b Line) int { return cmp.Compare(a.Reached[0].Max, b.Reached[0].Max) }).Reached[0].Max
		for _, l := range its {
			p.drawBar(singleFrom, l.label(), colour(i), l.Reached[0], (singleTo-singleFrom)/longest)
		}
	}
}

// singleAxis returns a logarithmic axis for figures of one unit. wide says that they differ so much
// that bars on one linear scale would show the largest only.
func singleAxis(lines []Line) (x axis, wide bool) {
	var medians, all []float64
	for _, l := range lines {
		s := l.Reached[0]
		for _, v := range []float64{s.Min, s.Median, s.Max} {
			if v >= leastShown {
				all = append(all, v)
			}
		}
		if s.Median >= leastShown {
			medians = append(medians, s.Median)
		}
	}
	if len(medians) == 0 {
		return x, false
	}
	return decades(all, singleFrom, singleTo), slices.Max(medians) > 20*slices.Min(medians)
}

// leastShown is the least value on an axis of powers of ten.
const leastShown = 1

// drawPoints draws figures on a logarithmic axis: the median as a point, the extremes as a line. The
// axis has no 0, from which bars could begin.
func (p *plot) drawPoints(lines []Line, x axis, colour string) {
	top := p.y
	for _, l := range lines {
		s, middle := l.Reached[0], p.y+barHeight/2.0
		p.text(singleFrom-6, middle+4, "s", "end", l.label())
		fmt.Fprintf(p, `<path d="M%.1f %.1fH%.1f" stroke="%s" stroke-width="2"/>`+"\n", x.at(s.Min), middle, x.at(s.Max), colour)
		if s.Median >= x.low {
			fmt.Fprintf(p, `<circle cx="%.1f" cy="%.1f" r="4" fill="%s"/>`+"\n", x.at(s.Median), middle, colour)
		}
		p.text(singleTo+10, middle+4, "s", "start", s.String())
		p.y += barHeight
	}
	for v := x.low; v <= x.high*1.001; v *= 10 {
		fmt.Fprintf(p, `<path class="g" d="M%.1f %.1fV%.1f"/>`+"\n", x.at(v), top, p.y)
		p.text(x.at(v), p.y+14, "s", "middle", abbreviate(v))
	}
	p.y += 14
}

// abbreviate writes a power of ten that is at least 1, where there is little room.
func abbreviate(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%.0fM", v/1e6)
	case v >= 1e3:
		return fmt.Sprintf("%.0fk", v/1e3)
	}
	return fmt.Sprintf("%.0f", v)
}
