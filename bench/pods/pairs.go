package pods

import (
	"context"
	"errors"
	"time"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/bench/report"
	"github.com/antrail/antrail/bench/rig"
	"github.com/antrail/antrail/bench/sched"
)

// pair is a contender: two pods, and what carries frames between them.
type pair struct {
	name string
	// only is the single profile in which it takes part; empty means all.
	only string
	// client and server run a function in the pod's network namespace.
	client, server func(func() error) error
	// address is where the client finds the server: its pod's address, with a port that policies
	// allow. listens is where the server listens, if that is elsewhere.
	address, listens string
	// inward is the opposite direction in profile gateway; nil without one.
	inward *pair
	// waitWarm waits until so many streams flow as they will for long; nil if they do at once.
	waitWarm func(ctx context.Context, streams int) error
	// switches are process numbers of switches and agents; none if the kernel forwards.
	switches []string
	// agent is that of a lab's Node.
	agent *api.Client
	// setResting stops threads that never sleep while others are measured; nil if there are none.
	setResting func(yes bool) error
	close      func() error
}

// measureAwake measures while the pair does not rest.
func (p *pair) measureAwake(measure func() ([]rig.Reading, error)) ([]rig.Reading, error) {
	if p.setResting == nil {
		return measure()
	}
	if err := p.setResting(false); err != nil {
		return nil, err
	}
	readings, err := measure()
	return readings, errors.Join(err, p.setResting(true))
}

// opener opens the contender with a name.
type opener struct {
	name string
	open func() (*pair, error)
}

// openPairs opens the contenders that take part. absent says which ones this machine lacks, and why. With
// an error, pairs are those that were opened.
func openPairs(r *rig.Rig, openers []opener) (pairs []*pair, absent []string, err error) {
	for _, o := range openers {
		if !r.Wants(o.name) {
			continue
		}
		p, err := o.open()
		var missing report.MissingError
		switch {
		case errors.As(err, &missing):
			absent = append(absent, missing.Error())
			r.Say("%v", missing)
		case err != nil:
			return pairs, absent, err
		default:
			pairs = append(pairs, p)
		}
	}
	return pairs, absent, nil
}

// openNoted is openPairs for profiles with streams of iperf3. It notes what this machine lacks.
func openNoted(r *rig.Rig, c *report.Comparison, openers []opener) ([]*pair, error) {
	pairs, absent, err := openPairs(r, openers)
	c.Notes = append(c.Notes, absent...)
	noteIperf(r, c)
	if err != nil {
		return nil, errors.Join(err, closePairs(pairs))
	}
	return pairs, nil
}

// closePairs closes contenders.
func closePairs(pairs []*pair) error {
	var errs []error
	for _, p := range pairs {
		errs = append(errs, p.close())
	}
	return errors.Join(errs...)
}

// runOpened opens contenders and measures them in rounds.
func runOpened(ctx context.Context, r *rig.Rig, c *report.Comparison, open func(context.Context, *rig.Rig, *report.Comparison) ([]*pair, error), measure measurePair) error {
	return sched.RunAsOrdinary(func() (err error) {
		pairs, err := open(ctx, r, c)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, closePairs(pairs)) }()
		return r.RunRounds(ctx, c, pairSides(r, c.Profile, pairs, measure))
	})
}

// measurePair measures a contender once. Traffic for each figure flows for window.
type measurePair func(ctx context.Context, p *pair, window time.Duration) ([]rig.Reading, error)

// measureEach measures a contender in several ways, one after the other.
func measureEach(ctx context.Context, p *pair, window time.Duration, measures []measurePair) (all []rig.Reading, err error) {
	for _, measure := range measures {
		readings, err := measure(ctx, p, window)
		if err != nil {
			return nil, err
		}
		all = append(all, readings...)
	}
	return all, nil
}

// pairSides returns the pairs that take part in a profile, as sides.
func pairSides(r *rig.Rig, profile string, pairs []*pair, measure measurePair) (sides []*rig.Side) {
	for _, p := range pairs {
		if p.only != "" && p.only != profile {
			continue
		}
		sides = append(sides, &rig.Side{Name: p.name, Measure: func(ctx context.Context) ([]rig.Reading, error) {
			return p.measureAwake(func() ([]rig.Reading, error) { return measure(ctx, p, r.Window) })
		}})
	}
	return sides
}
