package pipeline

import (
	"context"
	"errors"
	"slices"

	"github.com/antrail/antrail/bench/report"
	"github.com/antrail/antrail/bench/rig"
	"github.com/antrail/antrail/bench/workload"
)

// programsNotes say what profile programs measures.
var programsNotes = []string{
	"Packets go between two pods of a Node through the programs beside Antrea's. Those have fewer tables.",
	"The profile also measures two forms of Antrea's pipeline: an external Node, from its card to its own network, and networkPolicyOnly, beside another CNI.",
	"Programs uplink and windows2020 switch between pods. Program vppl3 routes: a packet to a Service passes three ct(), and its connection has an entry in each of two zones.",
}

// RunPrograms is profile programs: the cost of a packet in each program beside Antrea's.
func RunPrograms(ctx context.Context, r *rig.Rig, c *report.Comparison) (err error) {
	c.Notes = slices.Concat(c.Notes, programsNotes, aloneNotes)
	c.NoteMissing("Open vSwitch", ovsMissing())
	loads, err := workload.OtherPrograms()
	if err != nil {
		return err
	}
	var points []rig.Point
	var open []*rig.Side
	defer func() { err = errors.Join(err, rig.CloseSides(open)) }()
	for _, l := range loads {
		sides, err := openSides(ctx, r, c, &programTest{program: l.Program, kinds: l.Kinds})
		open = append(open, sides...)
		if err := errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		for _, s := range sides {
			s.Measure = nameReadings(l.Name, s.Measure)
		}
		points = append(points, rig.Point{Sides: sides})
	}
	return r.RunSweep(ctx, c, points)
}

// nameReadings puts the name of a program before each figure.
func nameReadings(program string, measure func(context.Context) ([]rig.Reading, error)) func(context.Context) ([]rig.Reading, error) {
	return func(ctx context.Context) ([]rig.Reading, error) {
		list, err := measure(ctx)
		for i := range list {
			list[i].Name = program + ": " + list[i].Name
		}
		return list, err
	}
}
