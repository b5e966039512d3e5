package gc

import (
	"context"
	"errors"
	"time"

	"github.com/antrail/antrail/bench/report"
	"github.com/antrail/antrail/bench/rig"
	"github.com/antrail/antrail/bench/sched"
)

// turnPart is how long a part of a window is. At least one collection beside 10,000 rules of policies
// begins and ends in it.
const turnPart = 50 * time.Millisecond

// stealBefore is the time before a part in which a steal still disturbs the part. A turn that the steal
// delayed may end in the part.
const stealBefore = 10 * time.Millisecond

// mostDropped is how many windows' worth of parts is dropped for one window at most.
const mostDropped = 2

// totals adds up parts of a window.
type totals struct {
	longest time.Duration // the longest turn
	long    uint64        // turns longer than longTurn
	packets uint64
	took    time.Duration
	parts   int
}

// addTotals adds the totals of other parts.
func (s *totals) addTotals(more totals) {
	s.longest = max(s.longest, more.longest)
	s.long += more.long
	s.packets += more.packets
	s.took += more.took
	s.parts += more.parts
}

// timePerPacket is the time of a packet in ns.
func (s *totals) timePerPacket() float64 { return float64(s.took) / float64(s.packets) }

// windowTotals adds up the parts of a window that count, and those that were dropped.
type windowTotals struct {
	totals
	dropped totals
	needed  int    // disturbed parts that count, since there were too few others
	all     uint64 // packets, with those of dropped parts
}

// disturbedReadings tell how many parts of a round's windows were disturbed, and the longest turn of
// dropped parts.
func disturbedReadings(all ...windowTotals) []rig.Reading {
	var dropped totals
	needed := 0
	for _, w := range all {
		dropped.addTotals(w.dropped)
		needed += w.needed
	}
	return []rig.Reading{
		{Name: "longest turn in parts thrown away", Unit: "µs", Value: microseconds(dropped.longest)},
		{Name: "parts thrown away", Unit: report.SamplesUnit, Value: float64(dropped.parts)},
		{Name: "disturbed parts that were needed", Unit: report.SamplesUnit, Value: float64(needed)},
	}
}

// watchWindow watches the worker until undisturbed parts fill a window, or disturbed parts fill
// mostDropped windows. If less than half a window is undisturbed then, the disturbed parts count, too.
func (t *turns) watchWindow(ctx context.Context, window time.Duration) (w windowTotals, err error) {
	t.source.longest.Store(0) // forget turns before the window
	for last := t.source.takeState(); w.took < window && w.dropped.took < mostDropped*window && err == nil; {
		var now sourceState
		if now, err = t.watchPart(ctx, last.at, min(turnPart, window)); err != nil {
			break
		}
		one := totals{now.longest, now.long - last.long, now.packets - last.packets, now.at.Sub(last.at), 1}
		if w.all += one.packets; now.disturbed {
			w.dropped.addTotals(one)
		} else {
			w.addTotals(one)
		}
		last = now
	}
	if w.took < window/2 {
		w.needed = w.dropped.parts
		w.addTotals(w.dropped)
		w.dropped = totals{}
	}
	return w, err
}

// sourceState is a snapshot of a source's counters.
type sourceState struct {
	at        time.Time
	packets   uint64
	long      uint64        // turns longer than longTurn
	longest   time.Duration // the longest turn since the last snapshot; 0 if none ended
	disturbed bool          // a processor was stolen since the last snapshot, or just before
}

// watchPart watches the worker for long, and then until a turn ends. It says whether a processor
// was stolen since began, or just before.
func (t *turns) watchPart(ctx context.Context, began time.Time, long time.Duration) (now sourceState, err error) {
	for now.longest == 0 && err == nil {
		sched.Wait(ctx, long)
		now = t.source.takeState()
		if err = ctx.Err(); err == nil && now.at.Sub(began) > beginTimeout {
			err = errors.New("the worker made no turn")
		}
	}
	if err != nil || t.steal == nil {
		return now, err
	}
	ago, err := t.steal.SinceStolen()
	now.disturbed = ago < now.at.Sub(began)+stealBefore
	return now, err
}
