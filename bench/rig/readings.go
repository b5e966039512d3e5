package rig

import (
	"fmt"
	"slices"

	"github.com/antrail/antrail/bench/report"
)

// Summary collects readings: a series for each figure and side. Readings of one figure have the same
// name, unit and size.
type Summary struct {
	// Sides are the names of the sides added so far.
	Sides []string
	rows  []*summaryRow // in the order in which the figures came
}

// summaryRow is one figure at one size.
type summaryRow struct {
	name, unit string
	x          float64
	bySide     []report.Series // with an element for each side
}

// AddSide adds a side, unless there is one of this name, and returns its index. All sides must be
// added before the first readings.
func (s *Summary) AddSide(name string) int {
	i := slices.Index(s.Sides, name)
	if i < 0 {
		i, s.Sides = len(s.Sides), append(s.Sides, name)
	}
	return i
}

// Add adds the readings of a side at a size, 0 outside a sweep.
func (s *Summary) Add(side string, x float64, readings []Reading) {
	i := s.AddSide(side)
	for _, r := range readings {
		row := s.findRow(r, x)
		row.bySide[i] = append(row.bySide[i], r.Value)
	}
}

// findRow finds a figure's row, or makes it.
func (s *Summary) findRow(r Reading, x float64) *summaryRow {
	for _, row := range s.rows {
		if row.name == r.Name && row.unit == r.Unit && row.x == x {
			return row
		}
	}
	row := &summaryRow{r.Name, r.Unit, x, make([]report.Series, len(s.Sides))}
	s.rows = append(s.rows, row)
	return row
}

// Lines returns a line for each figure, with ratios to the first side.
func (s *Summary) Lines() (lines []report.Line) {
	for _, row := range s.rows {
		line := report.Line{Name: row.name, Unit: row.unit, X: row.x}
		for i, series := range row.bySide {
			spread := series.WithoutNaN().Spread()
			if first := row.bySide[0]; i > 0 && spread != nil && len(series) == len(first) {
				spread.Ratio = series.RatiosTo(first).WithoutNaN().Median()
			}
			line.Reached = append(line.Reached, spread)
		}
		lines = append(lines, line)
	}
	return lines
}

// growthUnit is the unit of a figure over the same figure, of the same side and round, at the first
// size of a sweep.
const growthUnit = "times"

// growth returns how figures grow in a sweep: a line for each size but the first.
func (s *Summary) growth() (lines []report.Line) {
	for _, row := range s.rows {
		first := s.rows[slices.IndexFunc(s.rows, func(r *summaryRow) bool { return r.name == row.name && r.unit == row.unit })]
		if first == row || row.unit == report.SamplesUnit {
			continue
		}
		line := report.Line{Name: fmt.Sprintf("%s, over that at %.0f", row.name, first.x), Unit: growthUnit, X: row.x}
		for side, series := range row.bySide {
			var spread *report.Spread
			if at := first.bySide[side]; len(at) == len(series) {
				spread = series.RatiosTo(at).WithoutNaN().Spread()
			}
			line.Reached = append(line.Reached, spread)
		}
		lines = append(lines, line)
	}
	return lines
}
