package pipeline

import (
	"context"
	"errors"

	"github.com/antrail/antrail/bench/report"
	"github.com/antrail/antrail/bench/rig"
	"github.com/antrail/antrail/bench/workload"
)

// programsNote says what profile programs measures.
const programsNote = "Packets between two pods of a Node by the programs beside Antrea's, which have fewer tables, and by Antrea's where it has other tables: on an external Node, from its card to its own network, and beside another CNI (networkPolicyOnly). uplink and windows2020 switch between pods, and vppl3 routes: it asks conntrack three times for a packet to a Service, whose connection has an entry in each of two zones."

// RunPrograms is profile programs: the cost of a packet in each program beside Antrea's.
func RunPrograms(ctx context.Context, r *rig.Rig, c *report.Comparison) (err error) {
	c.Notes = append(c.Notes, programsNote, aloneNote)
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
