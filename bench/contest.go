package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A contest: all contenders of a profile are open at once and are measured in
// turn, A B C B C A, until the profile's part of the time is up. What is told is
// the median of the rounds, their extremes, and the median of each round's ratio
// to the first contender. Where something is swept a round has all its sizes, so
// that a figure's growth is one of each round, too.

// reading is one figure of one round; its value is NaN when the round could not
// tell.
type reading struct {
	name, unit string
	value      float64
}

// side is a contender that is open.
type side struct {
	name    string
	measure func(context.Context) ([]reading, error)
	close   func() error // nil: nothing to close
}

// point is the contenders with so much of what a sweep varies.
type point struct {
	x     float64 // 0 where nothing is swept
	sides []*side
}

// closeAll closes sides at the same time: an Open vSwitch takes a second or two.
func closeAll(sides []*side) error {
	ended := make(chan error)
	for _, s := range sides {
		go func() {
			if s.close == nil {
				ended <- nil
				return
			}
			ended <- s.close()
		}()
	}
	var errs []error
	for range sides {
		errs = append(errs, <-ended)
	}
	return errors.Join(errs...)
}

// contest measures the sides in turn, for as many rounds as there is time for.
// The figures become lines of c.
func (r *rig) contest(ctx context.Context, c *Comparison, sides []*side) error {
	return r.contestAt(ctx, c, []point{{sides: sides}})
}

// contestAt is contest where something is swept. With an error, c has what the
// rounds before it brought.
func (r *rig) contestAt(ctx context.Context, c *Comparison, points []point) (err error) {
	b := &board{}
	for i := range points {
		if points[i].sides, err = r.wanted(points[i].sides); err != nil {
			return err
		}
		for _, s := range points[i].sides {
			b.side(s.name)
		}
	}
	rounds, longest := 0, time.Duration(0)
	for rounds == 0 || r.another(rounds, longest) {
		start := time.Now()
		var found []finding
		if found, err = r.round(ctx, c.Profile, points, rounds); err != nil {
			err = fmt.Errorf("round %d: %w", rounds+1, err)
			break
		}
		rounds++
		b.note(found)
		took := time.Since(start)
		longest = max(longest, took)
		r.say("%s: round %d, %.1f s", c.Profile, rounds, took.Seconds())
	}
	if rounds > 0 {
		c.Sides, c.Lines = b.sides, slices.Concat(b.lines(), b.growth())
		c.Notes = append(c.Notes, fmt.Sprintf("Rounds: %d.", rounds))
		if slices.ContainsFunc(c.Lines, unknown) {
			c.Notes = append(c.Notes, missingNote)
		}
	}
	return err
}

// missingNote says why figures are missing that there would be on a quiet machine.
const missingNote = "Figures are missing since other programs had the processors too often. They are there on a quiet machine, and often under chrt -r 10."

// unknown says whether a line has no figure of any side, since no round could tell.
func unknown(l Line) bool {
	return !slices.ContainsFunc(l.Reached, func(s *Spread) bool { return s != nil })
}

// another says whether a further round is begun: there are fewer than asked for,
// or it is over in time if it takes as long as the longest.
func (r *rig) another(rounds int, longest time.Duration) bool {
	return rounds < r.Rounds || rounds < mostRounds && !time.Now().Add(longest).After(r.until)
}

// mostRounds is how many rounds are worth their time.
const mostRounds = 25

// finding is what a side found at a point.
type finding struct {
	side     string
	x        float64
	readings []reading
}

// round measures every side at every point once. Each round begins with another side:
// who comes first finds the machine rested, and what is measured last pays for it.
func (r *rig) round(ctx context.Context, profile string, points []point, turn int) (found []finding, err error) {
	for _, p := range points {
		for i := range p.sides {
			s := p.sides[(i+turn)%len(p.sides)]
			if p.x != 0 || turn == 0 { // how long the first round takes nobody knows yet
				r.say("%s: %s%s", profile, s.name, at(p.x))
			}
			readings, err := s.measure(ctx)
			if err := cmp.Or(ctx.Err(), err); err != nil {
				return nil, fmt.Errorf("%s%s: %w", s.name, at(p.x), err)
			}
			found = append(found, finding{s.name, p.x, readings})
		}
	}
	return found, nil
}

// wants says whether a contender of this name takes part, and notes one that does not.
func (r *rig) wants(name string) bool {
	wanted := len(r.Contenders) == 0 || slices.ContainsFunc(r.Contenders, func(part string) bool {
		return strings.Contains(strings.ToLower(name), strings.ToLower(part))
	})
	if !wanted && !slices.Contains(r.unwanted, name) {
		r.unwanted = append(r.unwanted, name)
	}
	return wanted
}

// wanted is the sides that take part, of which there must be one.
func (r *rig) wanted(sides []*side) (list []*side, err error) {
	for _, s := range sides {
		if r.wants(s.name) {
			list = append(list, s)
		}
	}
	if len(list) == 0 {
		err = fmt.Errorf("no contender is %s; there are %s", strings.Join(r.Contenders, " or "), strings.Join(r.unwanted, ", "))
	}
	return list, err
}

// at names the point of a sweep.
func at(x float64) string {
	if x == 0 {
		return ""
	}
	return fmt.Sprintf(" at %.0f", x)
}

// board collects readings: a series for each figure and side.
type board struct {
	sides []string
	rows  []*boardRow // in the order in which the figures came
}

type boardRow struct {
	name, unit string
	x          float64
	of         []series // by side
}

// side is the column of a side, which is made if there is none.
func (b *board) side(name string) int {
	i := slices.Index(b.sides, name)
	if i < 0 {
		i, b.sides = len(b.sides), append(b.sides, name)
	}
	return i
}

// note takes what a round found. All its sides have their columns.
func (b *board) note(found []finding) {
	for _, f := range found {
		side := b.side(f.side)
		for _, r := range f.readings {
			row := b.row(r, f.x)
			row.of[side] = append(row.of[side], r.value)
		}
	}
}

// row finds a figure's row, or makes it.
func (b *board) row(r reading, x float64) *boardRow {
	for _, row := range b.rows {
		if row.name == r.name && row.unit == r.unit && row.x == x {
			return row
		}
	}
	row := &boardRow{r.name, r.unit, x, make([]series, len(b.sides))}
	b.rows = append(b.rows, row)
	return row
}

func (b *board) lines() (lines []Line) {
	for _, row := range b.rows {
		line := Line{Name: row.name, Unit: row.unit, X: row.x}
		for i, s := range row.of {
			spread := s.known().spread()
			if first := row.of[0]; i > 0 && spread != nil && len(s) == len(first) {
				spread.Ratio = s.over(first).known().median()
			}
			line.Reached = append(line.Reached, spread)
		}
		lines = append(lines, line)
	}
	return lines
}

// growthUnit is that of a figure over the same one, of the same side and round,
// at the first point of a sweep.
const growthUnit = "times"

// growth is how figures grow with what a sweep varies, a line for each point but
// the first.
func (b *board) growth() (lines []Line) {
	for _, row := range b.rows {
		first := b.rows[slices.IndexFunc(b.rows, func(r *boardRow) bool { return r.name == row.name && r.unit == row.unit })]
		if first == row || row.unit == windowsUnit {
			continue
		}
		line := Line{Name: fmt.Sprintf("%s, over that at %.0f", row.name, first.x), Unit: growthUnit, X: row.x}
		for side, s := range row.of {
			var spread *Spread
			if at := first.of[side]; len(at) == len(s) {
				spread = s.over(at).known().spread()
			}
			line.Reached = append(line.Reached, spread)
		}
		lines = append(lines, line)
	}
	return lines
}
