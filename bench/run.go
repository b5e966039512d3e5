package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/antrail/antrail/bench/pods"
	"github.com/antrail/antrail/bench/report"
	"github.com/antrail/antrail/bench/rig"
)

// The time of a run is divided among its profiles. Each has a weight (profiles.go). When a profile
// begins, it gets the part of the time left that its weight is of the weights of all that have not
// run. That includes the time to open its contenders, and to close those of the profile before. A
// profile begins another round if that would be over in time.

// profile is one question to the contenders.
type profile struct {
	name   string
	weight int    // of its part of the time
	asks   string // the question in a few words, for --help
	title  string
	run    func(context.Context, *rig.Rig, *report.Comparison) error
}

// ProfileNames are the names of all profiles, in the order in which they run.
func ProfileNames() (names []string) {
	for _, p := range profiles(nil) {
		names = append(names, p.name)
	}
	return names
}

// Describe writes a line for each profile: its name, with a star before the usual ones, its weight and
// its question.
func Describe(w io.Writer) {
	for _, p := range profiles(nil) {
		mark := " "
		if slices.Contains(UsualProfiles, p.name) {
			mark = "*"
		}
		fmt.Fprintf(w, "%s %-10s %2d  %s\n", mark, p.name, p.weight, p.asks)
	}
}

// Check returns an error if the options cannot be run.
func Check(o rig.Options) error { return o.Complete(UsualProfiles, ProfileNames()) }

// Run runs the profiles of o and returns what they found. Progress goes to progress, a line at a
// time. If a profile fails, the others still run: the Result holds what there is, and the error tells
// everything that failed. Most profiles need root. They work in network namespaces of their own,
// which are gone afterwards.
func Run(ctx context.Context, o rig.Options, progress io.Writer) (*rig.Result, error) {
	if err := o.Complete(UsualProfiles, ProfileNames()); err != nil {
		return nil, err
	}
	r := &rig.Rig{Options: o, Progress: progress}
	between := new(pods.Profiles)
	result := rig.NewResult(o)
	r.Warn("before the run", result.Machine.Foreign)
	end := result.Began.Add(o.Time)
	var failed []error
	list := chosen(profiles(between), o.Profiles)
	for i, p := range list {
		r.Until = share(time.Now(), end, list[i:])
		c := &report.Comparison{Profile: p.name, Title: p.title, Machine: result.Machine.String()}
		r.Say("[%d/%d] %s: %s", i+1, len(list), p.name, p.asks)
		if err := p.run(ctx, r, c); err != nil {
			failed = append(failed, fmt.Errorf("bench: %s: %w", p.name, err))
			c.Notes = append(c.Notes, fmt.Sprintf("It ended with an error: %v", err))
			if ctx.Err() != nil {
				err = ctx.Err() // other errors follow from it
			}
			r.Say("%s failed: %s", p.name, strings.ReplaceAll(err.Error(), context.Canceled.Error(), "interrupted"))
		}
		if len(c.Lines) > 0 {
			result.Comparisons = append(result.Comparisons, c)
		}
		result.Comparisons = append(result.Comparisons, r.TakeComparisons()...)
		if ctx.Err() != nil {
			break
		}
	}
	failed = append(failed, between.Close())
	if ctx.Err() != nil && !errors.Is(errors.Join(failed...), ctx.Err()) {
		failed = append(failed, ctx.Err())
	}
	result.Finish()
	r.Warn("after the run", result.ForeignAfter)
	return result, errors.Join(failed...)
}

// chosen returns the profiles of these names, in the order of the names.
func chosen(all []profile, names []string) (list []profile) {
	for _, name := range names {
		for _, p := range all {
			if p.name == name {
				list = append(list, p)
			}
		}
	}
	return list
}

// share returns when the first of these profiles, which have not run, must be done.
func share(now, end time.Time, left []profile) time.Time {
	sum := 0
	for _, p := range left {
		sum += p.weight
	}
	return now.Add(end.Sub(now) * time.Duration(left[0].weight) / time.Duration(sum))
}
