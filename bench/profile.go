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
// contenders are those that can answer it on this machine (contest.go).
//
// The time of a run is divided among its profiles: each has a weight (profiles.go),
// and gets of the time that is left when it begins what its weight is of those of
// all that have not run. To open contenders and to close those of the profile
// before is in it. A profile begins another round if it would be over in time.

// Options bounds a run of the rig; what is zero has a default.
type Options struct {
	// Profiles are the names of those to run, in this order: UsualProfiles when
	// empty, all of them in place of "all".
	Profiles []string
	// Time is about how long the whole run takes, 2 minutes when 0. Every
	// contender runs once even if that takes longer.
	Time time.Duration
	// Rounds is how many times each contender runs at least, however long that
	// takes. When 0, as often as there is time for.
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
	name   string
	weight int    // of its share of the time
	asks   string // in a few words, for --help
	title  string
	run    func(context.Context, *rig, *Comparison) error
}

// ProfileNames are the names of all profiles, in the order in which they run.
func ProfileNames() (names []string) {
	for _, p := range profiles() {
		names = append(names, p.name)
	}
	return names
}

// Describe writes a line for each profile: its name, with a star before the usual
// ones, its weight and what it asks.
func Describe(w io.Writer) {
	for _, p := range profiles() {
		mark := " "
		if slices.Contains(UsualProfiles, p.name) {
			mark = "*"
		}
		fmt.Fprintf(w, "%s %-10s %2d  %s\n", mark, p.name, p.weight, p.asks)
	}
}

// rig is a run: what its profiles share.
type rig struct {
	Options
	progress io.Writer
	until    time.Time // when the share of the profile that runs is used up
	pods     []*podPair
	absent   []string      // why there are no further pods
	more     []*Comparison // of the profile that runs, beside its own
	unwanted []string      // contenders that Contenders leaves out
}

// beside adds a comparison to that of the profile that runs; nil is none.
func (r *rig) beside(c *Comparison) {
	if c != nil {
		r.more = append(r.more, c)
	}
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
	result := begin(o)
	r.warn("before the run", result.Machine.Foreign)
	end := result.Began.Add(o.Time)
	var failed []error
	list := chosen(o.Profiles)
	for i, p := range list {
		r.until = share(time.Now(), end, list[i:])
		c := &Comparison{Profile: p.name, Title: p.title, Machine: result.Machine.String()}
		r.say("[%d/%d] %s: %s", i+1, len(list), p.name, p.asks)
		if err := p.run(ctx, r, c); err != nil {
			failed = append(failed, fmt.Errorf("bench: %s: %w", p.name, err))
			c.Notes = append(c.Notes, fmt.Sprintf("It ended with an error: %v", err))
			if ctx.Err() != nil {
				err = ctx.Err() // whatever else it broke
			}
			r.say("%s failed: %s", p.name, strings.ReplaceAll(err.Error(), context.Canceled.Error(), "interrupted"))
		}
		if len(c.Lines) > 0 {
			result.Comparisons = append(result.Comparisons, c)
		}
		result.Comparisons, r.more = append(result.Comparisons, r.more...), nil
		if ctx.Err() != nil {
			break
		}
	}
	failed = append(failed, r.closePods())
	if ctx.Err() != nil && !errors.Is(errors.Join(failed...), ctx.Err()) {
		failed = append(failed, ctx.Err())
	}
	result.end()
	r.warn("after the run", result.ForeignAfter)
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

// share is when the first of these profiles, which have not run, has to be done.
func share(now, end time.Time, left []profile) time.Time {
	sum := 0
	for _, p := range left {
		sum += p.weight
	}
	return now.Add(end.Sub(now) * time.Duration(left[0].weight) / time.Duration(sum))
}

func (r *rig) say(format string, args ...any) { fmt.Fprintf(r.progress, format+"\n", args...) }

// warn says when others have so much of the processors that the figures are
// doubtful.
func (r *rig) warn(when string, foreign float64) {
	if foreign > busyMachine {
		r.say("warning: other programs took %.0f %% of the processors %s: figures are doubtful", 100*foreign, when)
	}
}
