package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/antrail/antrail/bench/report"
	"github.com/antrail/antrail/bench/rig"
	"github.com/antrail/antrail/bench/workload"
	"github.com/antrail/antrail/flow"
)

// runProgramSweep measures programs of the sizes 10, 100 and so on up to largest. All are open at once, so
// that each round has all sizes. If the time is too short for a size, the run leaves it out and notes that.
func runProgramSweep(ctx context.Context, r *rig.Rig, c *report.Comparison, largest int, kinds []*workload.Packets, program func(int) (*flow.Program, error)) (err error) {
	c.Notes = append(c.Notes, pipelineNotes...)
	c.NoteMissing("Open vSwitch", ovsMissing())
	var points []rig.Point
	defer func() {
		var open []*rig.Side
		for _, p := range points {
			open = append(open, p.Sides...)
		}
		err = errors.Join(err, rig.CloseSides(open))
	}()
	sizes := decadesTo(largest)
	var took []time.Duration // to open each
	for i, n := range sizes {
		if i > 0 && time.Now().Add(nextDecade(took)).After(r.Until) {
			c.Notes = append(c.Notes, fmt.Sprintf("Sizes left out, because opening the next one takes longer than the time left: %v. A longer --time measures them.", sizes[i:]))
			break
		}
		start := time.Now()
		p, err := program(n)
		if err != nil {
			return err
		}
		sides, err := openSides(ctx, r, c, &programTest{x: float64(n), program: p, kinds: kinds})
		points = append(points, rig.Point{X: float64(n), Sides: sides})
		if err := errors.Join(err, ctx.Err()); err != nil {
			return fmt.Errorf("with %d: %w", n, err)
		}
		took = append(took, time.Since(start))
	}
	err = r.RunSweep(ctx, c, points)
	slices.SortStableFunc(c.Lines, func(a, b report.Line) int { return cmp.Compare(a.X, b.X) })
	return err
}

// nextDecade estimates how long the next size takes to open, which is ten times the last one. It is the
// time of the last one, and ten times its difference to the one before. Small sizes mostly take
// the time that a switch needs to start.
func nextDecade(took []time.Duration) (next time.Duration) {
	for i, t := range took {
		next = t
		if i > 0 {
			next += 10 * max(0, t-took[i-1])
		}
	}
	return next
}

// decadesTo returns the powers of ten from 10 to largest.
func decadesTo(largest int) (sizes []int) {
	for n := 10; n <= largest; n *= 10 {
		sizes = append(sizes, n)
	}
	return sizes
}

// policyNotes say what profile policy measures.
var policyNotes = []string{
	"Each rule is a conjunction of three clauses: one source address, one port and the receiving pod. A hundred rules share a priority.",
	"No rule matches the packets: each packet passes all rules.",
}

// RunPolicy is profile policy: the cost of a packet by the number of rules of policies.
func RunPolicy(ctx context.Context, r *rig.Rig, c *report.Comparison) error {
	c.Notes, c.Axis = append(c.Notes, policyNotes...), "rules of policies"
	return runProgramSweep(ctx, r, c, r.Largest, []*workload.Packets{workload.KnownConnection(), workload.NewConnections()}, workload.PolicyProgram)
}

// serviceNotes say what profile service measures.
var serviceNotes = []string{
	"Each Service has one UDP port and three endpoints. Its entries and groups are those that the agent makes.",
	"Packets go to two Services. One has all its endpoints in client-a. The other also has session affinity, and its client has a learned entry.",
}

// mostServices is where the sweep over Services ends.
const mostServices = 10_000

// RunService is profile service: the cost of a packet to a ClusterIP by the number of Services.
func RunService(ctx context.Context, r *rig.Rig, c *report.Comparison) error {
	c.Notes, c.Axis = append(c.Notes, serviceNotes...), "Services"
	return runProgramSweep(ctx, r, c, min(r.Largest, mostServices),
		[]*workload.Packets{workload.KnownToService(), workload.NewToService(), workload.NewToAffinityService()}, workload.ServiceProgram)
}
