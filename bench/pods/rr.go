package pods

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/antrail/antrail/bench/report"
	"github.com/antrail/antrail/bench/rig"
	"github.com/antrail/antrail/bench/sched"
	"golang.org/x/sys/unix"
)

// RunRR is profile rr: a question of one byte and an answer of one byte between two pods, over TCP.
//
// Both ends are blocking system calls on threads of their own, so that Go's poller is not measured
// (sched.RawRead). Where the kernel puts the ends decides much. On one processor an answer wakes the other
// end in 20 µs, on two in 50, and that changes from window to window. So the ends are also kept to
// one processor, which leaves the others to a switch.
func (p *Profiles) RunRR(ctx context.Context, r *rig.Rig, c *report.Comparison) error {
	c.Notes = append(c.Notes, "On up to four processors, antrail keeps idle processors awake while pods send packets (keepAwake), unless its name says otherwise. No other contender does.")
	return p.runPairs(ctx, r, c, measureRR)
}

// measureRR measures percentiles of round trips, with the ends anywhere and on one processor.
func measureRR(ctx context.Context, p *pair, window time.Duration) ([]rig.Reading, error) {
	one, err := sched.LastProcessor()
	if err != nil {
		return nil, err
	}
	var readings []rig.Reading
	for _, ends := range []struct {
		where string
		on    *unix.CPUSet
	}{{"round trip", nil}, {"round trip, ends on one processor", one}} {
		times, err := p.roundTrips(ctx, window, ends.on)
		if err != nil {
			return nil, err
		}
		slices.Sort(times)
		for _, percent := range []float64{50, 90, 99} {
			readings = append(readings, rig.Reading{Name: fmt.Sprintf("%s, %v %%", ends.where, percent), Unit: "µs", Value: percentile(times, percent/100).Seconds() * 1e6})
		}
	}
	return readings, nil
}
