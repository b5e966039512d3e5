package conntrack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/antrail/antrail/bench/ovs"
	"github.com/antrail/antrail/bench/report"
	"github.com/antrail/antrail/bench/rig"
)

// side is one of the two that are compared.
type side struct {
	name    string
	measure func(context.Context, *Options) (figures, error)
}

// Compare measures connection tracking alone, that of antrail and that of Open vSwitch's userspace
// datapath in turn. Progress goes to w. If Open vSwitch cannot be measured here, the comparison has one
// side and says why. Open vSwitch's side needs root.
func Compare(ctx context.Context, o Options, w io.Writer) (*report.Comparison, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	c := &report.Comparison{
		Title: fmt.Sprintf("Connection tracking, %d rounds of %d packets a figure", o.Rounds, o.Packets), Machine: rig.MachineLine(), Axis: "connections",
		Notes: []string{
			"Both: UDP over IPv4, one ct(commit) per packet. Each packet belongs to a connection picked at random.",
			"A figure is the cost with ct(commit) less the cost of the same packets without ct(). If the difference is not above 0, as on a busy machine, the round has no figure.",
			"If the table is full of answered connections, antrail removes the oldest one of the port that holds the most. Open vSwitch refuses the new one.",
			"antrail: calls of conntrack.Track. For memory and restart, the table lies in a file of tmpfs. All of its memory is allocated at the start.",
		},
	}
	sides := []side{{"antrail", measureTable}}
	switch why := ovs.Missing(); why {
	case nil:
		sides = append(sides, side{ovs.Version(), measureOVS})
		c.Notes = append(c.Notes, ovsNotes...)
	default:
		c.Notes = append(c.Notes, fmt.Sprintf("Open vSwitch: not present (%v).", why))
	}
	rounds, err := o.runSides(ctx, sides, w)
	if err != nil {
		return nil, err
	}
	for _, s := range sides {
		c.Sides = append(c.Sides, s.name)
	}
	for _, l := range o.lines() {
		line := report.Line{Name: l.name, Unit: l.unit, X: l.x}
		for side := range sides {
			line.Reached = append(line.Reached, seriesOf(rounds[side], l.figure).WithoutNaN().Spread())
		}
		c.Lines = append(c.Lines, line)
	}
	return c, nil
}

// Run is Compare as a run of its own.
func Run(ctx context.Context, o Options, progress io.Writer) (*rig.Result, error) {
	result := rig.NewResult(rig.Options{Profiles: []string{Name}})
	c, err := Compare(ctx, o, progress)
	if err != nil {
		return nil, err
	}
	c.Profile = Name
	result.Comparisons = append(result.Comparisons, c)
	result.Finish()
	return result, nil
}

// Name is the name of the profile.
const Name = "conntrack"

// RunProfile is Compare as a profile of a longer run.
func RunProfile(ctx context.Context, r *rig.Rig, c *report.Comparison) error {
	o := Options{Rounds: r.Rounds, Entries: max(min(1_000_000, 10*r.Largest), leastEntries)}
	found, err := Compare(ctx, o, r.Progress)
	if err != nil {
		return err
	}
	c.Title, c.Axis, c.Sides, c.Lines, c.Notes = found.Title, found.Axis, found.Sides, found.Lines, append(c.Notes, found.Notes...)
	return nil
}

// runSides measures the sides in turn, and returns the rounds of each.
func (o *Options) runSides(ctx context.Context, sides []side, w io.Writer) ([][]figures, error) {
	rounds := make([][]figures, len(sides))
	for round := range o.Rounds {
		for i, s := range sides {
			start := time.Now()
			f, err := s.measure(ctx, o)
			if err := errors.Join(err, ctx.Err()); err != nil {
				return nil, fmt.Errorf("bench: round %d: %s: %w", round+1, s.name, err)
			}
			rounds[i] = append(rounds[i], f)
			fmt.Fprintf(w, "round %d of %d: %s: %v\n", round+1, o.Rounds, s.name, time.Since(start).Round(time.Millisecond))
		}
	}
	return rounds, nil
}
