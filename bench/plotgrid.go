package bench

import (
	"cmp"
	"fmt"
	"slices"
)

// Plots of what has no contenders: a grid, whose columns are the sides, and the
// figures of a single side.

const (
	gridLabel = 168 // of the rows' names
	gridValue = 34  // of a cell's figure
	// singleLabel is of names before the bars of a single side.
	singleLabel = 330
	singleValue = 170
)

// grid draws a row for each line and a column for each side, with bars of one
// scale, each with its extremes and, behind them, its median.
func (p *plot) grid(sides []string, lines []Line) {
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
	p.key(sides, lines[0].Unit)
	wide := float64(plotWidth-2*plotMargin-gridLabel) / float64(len(sides))
	top := p.y
	for _, l := range lines {
		p.text(plotMargin+gridLabel-6, p.y+barHeight/2.0+4, "s", "end", l.Name)
		for i, s := range l.Reached {
			if s != nil {
				p.cell(plotMargin+gridLabel+float64(i)*wide, colour(i), s, (wide-gridValue)/longest)
			}
		}
		p.y += barHeight
	}
	for i := range sides {
		fmt.Fprintf(p, `<path class="g" d="M%.1f %.1fV%.1f"/>`+"\n", plotMargin+gridLabel+float64(i)*wide, top, p.y)
	}
}

func (p *plot) cell(x float64, colour string, s *Spread, scale float64) {
	middle := p.y + barHeight/2.0
	fmt.Fprintf(p, `<rect x="%.1f" y="%.1f" width="%.1f" height="%d" fill="%s"/>`+"\n", x, p.y+1, max(s.Median*scale, 1), barHeight-3, colour)
	fmt.Fprintf(p, `<path class="w" d="M%.1f %.1fH%.1f"/>`+"\n", x+s.Min*scale, middle-0.5, x+s.Max*scale)
	p.text(x+s.Max*scale+4, middle+4, "s", "start", fmt.Sprintf("%.0f", s.Median))
}

// key names the columns, one to a line, since names are longer than columns.
func (p *plot) key(sides []string, unit string) {
	p.y += 10
	for i, name := range sides {
		fmt.Fprintf(p, `<rect x="%d" y="%.1f" width="10" height="10" fill="%s"/>`+"\n", plotMargin, p.y, colour(i))
		p.text(plotMargin+16, p.y+9, "", "start", fmt.Sprintf("%s, %s", name, unit))
		p.y += barHeight
	}
	p.y += 8
}

// single draws the figures of one side: those of a unit stand together, on one
// scale.
func (p *plot) single(lines []Line) {
	var units []string
	for _, l := range lines {
		if l.Unit != windowsUnit && !slices.Contains(units, l.Unit) && l.Reached[0] != nil && l.Reached[0].Max > 0 {
			units = append(units, l.Unit)
		}
	}
	const x = plotMargin + singleLabel
	for i, unit := range units {
		its := slices.DeleteFunc(slices.Clone(lines), func(l Line) bool { return l.Unit != unit || l.Reached[0] == nil })
		longest := slices.MaxFunc(its, func(a, b Line) int { return cmp.Compare(a.Reached[0].Max, b.Reached[0].Max) }).Reached[0].Max
		p.y += 22
		p.text(plotMargin, p.y, "", "start", unit)
		p.y += 6
		for _, l := range its {
			p.bar(x, l.label(), colour(i), l.Reached[0], (plotWidth-plotMargin-x-singleValue)/longest)
		}
	}
}
