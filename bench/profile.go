package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// The frame of the rig. A profile is one question to the datapaths; its
// contenders are those that can answer it on this machine. All contenders of a
// profile are open at once and are measured in turn, A B C A B C, until the
// profile's share of the time is up, and what is told is the median of the
// rounds, their extremes, and the median of each round's ratio to the first
// contender.

// Options bounds a run of the rig; what is zero has a default.
type Options struct {
	// Profiles are the names of those to run, in this order: UsualProfiles when
	// empty, all of them in place of "all".
	Profiles []string
	// Time is about how long the whole run takes, 2 minutes when 0. Every
	// contender runs Rounds times even if that takes longer, up to twice as long,
	// and once in any case.
	Time time.Duration
	// Rounds is how many times each contender runs at least; 3.
	Rounds int
	// Window is how long traffic flows for one figure; 200 ms.
	Window time.Duration
	// Contenders leaves out those whose names hold none of these, whatever the
	// case of letters; none is left out when it is empty.
	Contenders []string `json:",omitempty"`
	// Largest is where sweeps end, 10 to 1,000,000, or before when the time is up;
	// 100,000.
	Largest int
	// Binary is the antrail binary that labs' agents run; the running one when
	// empty.
	Binary string
	// StateDir is where labs keep their state; the usual place when empty.
	StateDir string
}

// Check says what is wrong with the options.
func (o Options) Check() error { return o.complete() }

func (o *Options) complete() error {
	if o.Time == 0 {
		o.Time = 2 * time.Minute
	}
	if o.Rounds == 0 {
		o.Rounds = 3
	}
	if o.Window == 0 {
		o.Window = 200 * time.Millisecond
	}
	if o.Largest == 0 {
		o.Largest = 100_000
	}
	if o.Time < 0 || o.Rounds < 0 || o.Window < time.Millisecond {
		return fmt.Errorf("bench: %d rounds, window %v, time %v: all are positive, the window at least 1ms", o.Rounds, o.Window, o.Time)
	}
	if o.Largest < 10 || o.Largest > 1_000_000 {
		return fmt.Errorf("bench: sweeps end at 10 to 1000000, not at %d", o.Largest)
	}
	if len(o.Profiles) == 0 {
		o.Profiles = UsualProfiles
	}
	if slices.Equal(o.Profiles, []string{"all"}) {
		o.Profiles = ProfileNames()
	}
	for _, name := range o.Profiles {
		if !slices.Contains(ProfileNames(), name) {
			return fmt.Errorf("bench: %q is no profile: all and %s are", name, strings.Join(ProfileNames(), ", "))
		}
	}
	return nil
}

// profile is one question to the datapaths.
type profile struct {
	name  string
	asks  string // in a few words, for --help
	title string
	run   func(context.Context, *rig, *Comparison) error
}

// ProfileNames are the names of all profiles, in the order in which they run.
func ProfileNames() (names []string) {
	for _, p := range profiles() {
		names = append(names, p.name)
	}
	return names
}

// Describe writes a line for each profile, with a star before the usual ones.
func Describe(w io.Writer) {
	for _, p := range profiles() {
		mark := " "
		if slices.Contains(UsualProfiles, p.name) {
			mark = "*"
		}
		fmt.Fprintf(w, "%s %-10s %s\n", mark, p.name, p.asks)
	}
}

// rig is a run: what its profiles share.
type rig struct {
	Options
	progress io.Writer
	until    time.Time // when the share of the profile that runs is used up
	pods     []*podPair
	absent   []string // why there are no further pods
}

// Run runs the profiles of o and returns what they found. Progress goes to
// progress, a line at a time. When a profile fails the others still run: the
// Result holds what there is, the error all that went wrong. Most profiles
// need root; what they make lies in network namespaces of its own and is gone
// afterwards.
func Run(ctx context.Context, o Options, progress io.Writer) (*Result, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	r := &rig{Options: o, progress: progress}
	result := &Result{Machine: inspect(), Began: time.Now().UTC(), Options: o}
	r.warn("before the run", result.Machine.Foreign)
	end := time.Now().Add(o.Time)
	var failed []error
	for i, p := range chosen(o.Profiles) {
		r.until = share(time.Now(), end, len(o.Profiles)-i)
		c := &Comparison{Profile: p.name, Title: p.title, Machine: result.Machine.String()}
		r.say("[%d/%d] %s: %s", i+1, len(o.Profiles), p.name, p.asks)
		if err := p.run(ctx, r, c); err != nil {
			failed = append(failed, fmt.Errorf("bench: %s: %w", p.name, err))
			r.say("%s failed: %v", p.name, err)
		} else {
			result.Comparisons = append(result.Comparisons, c)
		}
		if ctx.Err() != nil {
			break
		}
	}
	failed = append(failed, r.closePods(), ctx.Err())
	result.LoadAfter, result.ForeignAfter = loadAverage(), foreignLoad()
	r.warn("after the run", result.ForeignAfter)
	result.Took = time.Since(result.Began).Seconds()
	return result, errors.Join(failed...)
}

// chosen is the profiles of these names.
func chosen(names []string) (list []profile) {
	for _, name := range names {
		for _, p := range profiles() {
			if p.name == name {
				list = append(list, p)
			}
		}
	}
	return list
}

// share is when the next of so many profiles has to be done, so that each gets
// its part of what time is left.
func share(now, end time.Time, profiles int) time.Time {
	return now.Add(end.Sub(now) / time.Duration(profiles))
}

func (r *rig) say(format string, args ...any) { fmt.Fprintf(r.progress, format+"\n", args...) }

// warn says when others have so much of the processors that the figures are
// doubtful.
func (r *rig) warn(when string, foreign float64) {
	if foreign > busyMachine {
		r.say("warning: other programs took %.0f %% of the processors %s: figures are doubtful", 100*foreign, when)
	}
}

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

func closeAll(sides []*side) error {
	var errs []error
	for _, s := range sides {
		if s.close != nil {
			errs = append(errs, s.close())
		}
	}
	return errors.Join(errs...)
}

// contest measures the sides in turn: so many rounds as asked for, as long as the
// next one would be over within twice the time there is, then further ones while
// the next would be over in time. The figures become lines of c; x is how much
// there is of what a sweep varies, else 0.
func (r *rig) contest(ctx context.Context, c *Comparison, x float64, sides []*side) error {
	sides, err := r.wanted(sides)
	if err != nil {
		return err
	}
	b := board{x: x, sides: len(sides)}
	limit := r.until.Add(max(time.Until(r.until), longestDelay))
	for round := 0; ; round++ {
		start := time.Now()
		for i, s := range sides {
			readings, err := s.measure(ctx)
			if err := errors.Join(err, ctx.Err()); err != nil {
				return fmt.Errorf("round %d: %s: %w", round+1, s.name, err)
			}
			b.note(i, readings)
		}
		took := time.Since(start)
		r.say("%s: round %d, %.1f s", c.Profile, round+1, took.Seconds())
		if round+1 < r.Rounds && time.Now().Add(took).After(limit) {
			r.say("%s: the time is up after %d of %d rounds", c.Profile, round+1, r.Rounds)
			c.Notes = append(c.Notes, fmt.Sprintf("%d of %d rounds: the time was up%s.", round+1, r.Rounds, at(x)))
			break
		}
		if round+1 >= r.Rounds && (time.Now().Add(took).After(r.until) || round+1 >= mostRounds) {
			break
		}
	}
	for _, s := range sides {
		if !slices.Contains(c.Sides, s.name) {
			c.Sides = append(c.Sides, s.name)
		}
	}
	c.Lines = append(c.Lines, b.lines()...)
	return nil
}

// wants says whether a contender of this name takes part.
func (r *rig) wants(name string) bool {
	return len(r.Contenders) == 0 || slices.ContainsFunc(r.Contenders, func(part string) bool {
		return strings.Contains(strings.ToLower(name), strings.ToLower(part))
	})
}

// wanted is the sides that take part, of which there must be one.
func (r *rig) wanted(sides []*side) (list []*side, err error) {
	for _, s := range sides {
		if r.wants(s.name) {
			list = append(list, s)
		}
	}
	if len(list) == 0 {
		err = fmt.Errorf("no contender is %s", strings.Join(r.Contenders, " or "))
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

// longestDelay is how much longer than its share a profile takes at least, on a
// busy machine, before rounds are left out.
const longestDelay = 10 * time.Second

// mostRounds is how many rounds are worth their time.
const mostRounds = 25

// board collects readings: a series for each figure and side.
type board struct {
	x     float64
	sides int
	rows  []*boardRow // in the order in which the figures came
}

type boardRow struct {
	name, unit string
	of         []series // by side
}

func (b *board) note(side int, readings []reading) {
	for _, r := range readings {
		row := b.row(r)
		row.of[side] = append(row.of[side], r.value)
	}
}

// row finds a figure's row, or makes it.
func (b *board) row(r reading) *boardRow {
	for _, row := range b.rows {
		if row.name == r.name && row.unit == r.unit {
			return row
		}
	}
	row := &boardRow{r.name, r.unit, make([]series, b.sides)}
	b.rows = append(b.rows, row)
	return row
}

func (b *board) lines() (lines []Line) {
	for _, row := range b.rows {
		line := Line{Name: row.name, Unit: row.unit, X: b.x}
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
