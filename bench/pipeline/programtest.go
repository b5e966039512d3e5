package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"

	"github.com/antrail/antrail/bench/ovs"
	"github.com/antrail/antrail/bench/report"
	"github.com/antrail/antrail/bench/rig"
	"github.com/antrail/antrail/bench/testbed"
	"github.com/antrail/antrail/bench/workload"
	"github.com/antrail/antrail/flow"
)

// programTest is a program with the measurements of it.
type programTest struct {
	x       float64 // the size in a sweep; 0 outside a sweep
	program *flow.Program
	kinds   []*workload.Packets
	install *installTest // nil: installing is not measured
	tables  *tableTimes  // nil: tables are not measured
}

// runTest measures antrail and Open vSwitch with a program.
func runTest(ctx context.Context, r *rig.Rig, c *report.Comparison, t *programTest) (err error) {
	c.Notes = append(c.Notes, pipelineNotes...)
	c.NoteMissing("Open vSwitch", ovsMissing())
	sides, err := openSides(ctx, r, c, t)
	defer func() { err = errors.Join(err, rig.CloseSides(sides)) }()
	if err != nil {
		return err
	}
	return r.RunRounds(ctx, c, sides)
}

// openSides opens the sides that take part. With an error, sides are those that were opened.
func openSides(ctx context.Context, r *rig.Rig, c *report.Comparison, t *programTest) (sides []*rig.Side, err error) {
	if r.Wants(ovs.Version()) && ovsMissing() == nil {
		r.Say("%s: %s gets %d entries", c.Profile, ovs.Version(), len(t.program.Entries))
		w, err := openOVS(ctx, t.program)
		if err != nil {
			return sides, fmt.Errorf("%s: %w", ovs.Version(), err)
		}
		sides = append(sides, ovsSide(r, w, t))
	}
	if r.Wants(antrailName) {
		r.Say("%s: %s gets %d entries", c.Profile, antrailName, len(t.program.Entries))
		w, err := openAntrail(t.program, testbed.SwitchOptions{})
		if err != nil {
			return sides, fmt.Errorf("%s: %w", antrailName, err)
		}
		w.program.countEntries = t.x == 0
		sides = append(sides, antrailSide(r, w, t))
	}
	return sides, nil
}

// antrailName is the name of antrail where it is one contender.
const antrailName = "antrail"

// ovsMissing says why Open vSwitch cannot be measured here. It is nil if it can.
func ovsMissing() error {
	if runtime.NumCPU() < 2 {
		return errors.New("it takes two processors: one makes packets, one polls")
	}
	return ovs.Missing()
}

// ovsSide is Open vSwitch as a side. It rests while others are measured.
func ovsSide(r *rig.Rig, w *ovsContender, t *programTest) *rig.Side {
	return &rig.Side{Name: ovs.Version(), Close: w.close, Measure: func(ctx context.Context) (list []rig.Reading, err error) {
		if err := w.SetResting(false); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, w.SetResting(true)) }()
		_, list, err = measureRound(ctx, r, w, t)
		return list, err
	}}
}

// antrailSide is antrail as a side. Outside a sweep it has figures that other sides lack.
func antrailSide(r *rig.Rig, w *antrailContender, t *programTest) *rig.Side {
	return &rig.Side{Name: antrailName, Close: w.close, Measure: func(ctx context.Context) ([]rig.Reading, error) {
		m, list, err := measureRound(ctx, r, w, t)
		if err == nil && t.x == 0 {
			list = append(list, m.antrailReadings()...)
		}
		if err == nil && t.tables != nil {
			err = t.tables.measureRound(ctx, t.kinds, samplePlan{samplesOfTables, r.Window / samplesOfRound, r.Until})
		}
		return list, err
	}}
}

// samplePlan is how many samples a round has of each kind.
func (t *programTest) samplePlan(r *rig.Rig) samplePlan {
	p := samplePlan{samplesOfRound, r.Window / samplesOfRound, r.Until}
	if t.x != 0 {
		p.want = samplesOfSweep
	}
	return p
}

// measureRound measures a contender once.
func measureRound(ctx context.Context, r *rig.Rig, w contender, t *programTest) (*measurement, []rig.Reading, error) {
	m, err := measureKinds(ctx, w, t.kinds, t.samplePlan(r))
	if err != nil {
		return nil, nil, err
	}
	list := m.aloneReadings()
	if t.install != nil {
		more, err := t.install.measureInstall(ctx, w)
		return m, append(list, more...), err
	}
	return m, list, nil
}

// antrailReadings are figures of each kind that only antrail has.
func (m *measurement) antrailReadings() (list []rig.Reading) {
	for i, c := range m.kinds {
		name := c.ShortName()
		n := m.samples[i].median(entries)
		list = append(list,
			rig.Reading{Name: name + ", with ports in memory", Unit: "ns", Value: m.samples[i].median(nanoseconds)},
			rig.Reading{Name: name + ", entries taken", Unit: "entries", Value: n},
			rig.Reading{Name: name + ", each entry", Unit: "ns", Value: m.alone(i) / max(n, 1)},
			// Rounded to thousandths, since the rest of the process makes a few.
			rig.Reading{Name: name + ", allocations of a packet", Unit: "allocs", Value: math.Round(1000*m.samples[i].median(allocations)) / 1000})
	}
	return list
}
