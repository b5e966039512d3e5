package rig

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/antrail/antrail/bench/report"
)

// All contenders of a profile are open at once. The rig measures them in turn, A B C B C A, until the
// profile's share of the time is over. The result is the median of the rounds, their extremes, and the
// median of each round's ratio to the first contender. In a sweep, a round has all sizes, so each
// round also gives the growth of a figure.

// Reading is one figure of one round.
type Reading struct {
	Name, Unit string
	// Value is NaN if the round gave no figure.
	Value float64
}

// Side is a contender that is open.
type Side struct {
	Name string
	// Measure measures the contender once.
	Measure func(context.Context) ([]Reading, error)
	// Close ends the contender; nil if there is nothing to end.
	Close func() error
}

// Point is the contenders at one size of a sweep.
type Point struct {
	// X is the size; 0 outside a sweep.
	X float64
	// Sides are its contenders.
	Sides []*Side
}

// CloseSides closes sides at the same time, since an Open vSwitch takes a second or two.
func CloseSides(sides []*Side) error {
	ended := make(chan error)
	for _, s := range sides {
		go func() {
			if s.Close == nil {
				ended <- nil
				return
			}
			ended <- s.Close()
		}()
	}
	var errs []error
	for range sides {
		errs = append(errs, <-ended)
	}
	return errors.Join(errs...)
}

// RunRounds measures the sides in turn, for as many rounds as there is time for. Their figures become
// lines of c. Sides that the options leave out do not take part.
func (r *Rig) RunRounds(ctx context.Context, c *report.Comparison, sides []*Side) error {
	return r.RunSweep(ctx, c, []Point{{Sides: sides}})
}

// RunSweep is RunRounds with several sizes. With an error, c has the figures of all earlier rounds.
func (r *Rig) RunSweep(ctx context.Context, c *report.Comparison, points []Point) (err error) {
	s := &Summary{}
	for i := range points {
		if points[i].Sides, err = r.keepWanted(points[i].Sides); err != nil {
			return err
		}
		for _, side := range points[i].Sides {
			s.AddSide(side.Name)
		}
	}
	rounds, longest := 0, time.Duration(0)
	for rounds == 0 || r.another(rounds, longest) {
		start := time.Now()
		var found []finding
		if found, err = r.runRound(ctx, c.Profile, points, rounds); err != nil {
			err = fmt.Errorf("round %d: %w", rounds+1, err)
			break
		}
		rounds++
		for _, f := range found {
			s.Add(f.side, f.x, f.readings)
		}
		took := time.Since(start)
		longest = max(longest, took)
		r.Say("%s: round %d, %.1f s", c.Profile, rounds, took.Seconds())
	}
	if rounds > 0 {
		c.Sides, c.Lines = s.Sides, slices.Concat(s.Lines(), s.growth())
		c.Notes = append(c.Notes, fmt.Sprintf("Rounds: %d.", rounds))
		if slices.ContainsFunc(c.Lines, report.Line.Empty) {
			c.Notes = append(c.Notes, MissingNote)
		}
	}
	return err
}

// MissingNote says why figures are missing that a quiet machine would give.
const MissingNote = "Figures are missing, because other programs used the processors too often. Measure on a quiet machine, or under chrt -r 10."

// another says whether a further round begins. It does if there are fewer than asked for, or if it is
// over in time when it takes as long as the longest.
func (r *Rig) another(rounds int, longest time.Duration) bool {
	return rounds < r.Rounds || rounds < mostRounds && !time.Now().Add(longest).After(r.Until)
}

// mostRounds is the number of rounds after which more are not worth their time.
const mostRounds = 25

// finding is the readings of a side at one size.
type finding struct {
	side     string
	x        float64
	readings []Reading
}

// runRound measures every side at every size once. Each round begins with another side, since the
// first one finds the machine rested, and the last one pays for it.
func (r *Rig) runRound(ctx context.Context, profile string, points []Point, turn int) (found []finding, err error) {
	for _, p := range points {
		for i := range p.Sides {
			s := p.Sides[(i+turn)%len(p.Sides)]
			if p.X != 0 || turn == 0 { // the first round may take long
				r.Say("%s: %s%s", profile, s.Name, sizeText(p.X))
			}
			readings, err := s.Measure(ctx)
			if err := cmp.Or(ctx.Err(), err); err != nil {
				return nil, fmt.Errorf("%s%s: %w", s.Name, sizeText(p.X), err)
			}
			found = append(found, finding{s.Name, p.X, readings})
		}
	}
	return found, nil
}

// Wants says whether the options let a contender of this name take part. It remembers one that they
// leave out.
func (r *Rig) Wants(name string) bool {
	wanted := len(r.Contenders) == 0 || slices.ContainsFunc(r.Contenders, func(part string) bool {
		return strings.Contains(strings.ToLower(name), strings.ToLower(part))
	})
	if !wanted && !slices.Contains(r.unwanted, name) {
		r.unwanted = append(r.unwanted, name)
	}
	return wanted
}

// keepWanted returns the sides that take part. It is an error if there are none.
func (r *Rig) keepWanted(sides []*Side) (list []*Side, err error) {
	for _, s := range sides {
		if r.Wants(s.Name) {
			list = append(list, s)
		}
	}
	if len(list) == 0 {
		err = fmt.Errorf("no contender is %s; there are %s", strings.Join(r.Contenders, " or "), strings.Join(r.unwanted, ", "))
	}
	return list, err
}

// sizeText names a size of a sweep behind a contender's name.
func sizeText(x float64) string {
	if x == 0 {
		return ""
	}
	return fmt.Sprintf(" at %.0f", x)
}
