package dataplane

import (
	"slices"
	"time"

	"github.com/antrail/antrail/flow"
)

// What tables cost is known of one walk in timeEvery, which is timed from end to
// end: each lookup, and what its entry does until the next lookup, ct() and
// groups included. A walk that is timed takes no stretches and draws none, so
// that each of its tables has its time, and none the time of drawing. Packets
// that are replayed do not walk, and are not timed.
//
// The clock is read three times a table. What a reading costs by itself, clockCost, is taken
// off; an interval longer than mostTimed is left out with its count: the
// worker's thread did not run meanwhile.

const (
	timeEvery = 509
	mostTimed = 50_000 // nanoseconds
)

// TableTimes is what packets cost in a table, of those that were timed.
type TableTimes struct {
	Timed uint64 // lookups
	// Lookup and Actions are what these took together, and what their entries
	// did until the next lookup or the end of the walk.
	Lookup, Actions time.Duration
}

// MeanLookup is what a lookup takes; 0 when none was timed.
func (t TableTimes) MeanLookup() time.Duration { return t.mean(t.Lookup) }

// MeanActions is what an entry's actions take; 0 when none was timed.
func (t TableTimes) MeanActions() time.Duration { return t.mean(t.Actions) }

func (t TableTimes) mean(d time.Duration) time.Duration {
	return max(0, d) / time.Duration(max(t.Timed, 1)) // the clock's cost is not always the same
}

func (t *tableState) add(n TableTimes) {
	t.timed.Add(n.Timed)
	t.lookupTime.Add(int64(n.Lookup))
	t.actionTime.Add(int64(n.Actions))
}

func (t *tableState) times() TableTimes {
	return TableTimes{t.timed.Load(), time.Duration(t.lookupTime.Load()), time.Duration(t.actionTime.Load())}
}

// timer times a walk now and then. It belongs to the worker's goroutine.
type timer struct {
	walks  int // since one was timed
	on     bool
	at     *tableTally   // whose entry's actions run; nil before the first table
	looked time.Duration // what its lookup took
	since  time.Duration // when that was over
}

// begin counts a walk, and turns the timer on for one in timeEvery.
func (c *timer) begin() {
	if c.walks++; c.walks == timeEvery {
		c.walks, c.on = 0, true
	}
}

// acted ends the actions of the table before, if there is one.
func (c *timer) acted(now time.Duration) {
	if c.at == nil {
		return
	}
	if d := now - c.since - clockCost; c.looked < mostTimed && d < mostTimed {
		c.at.times.Timed++
		c.at.times.Lookup += c.looked
		c.at.times.Actions += d
	}
	c.at = nil
}

// end ends the walk.
func (c *timer) end() {
	c.acted(sinceBegin())
	c.on = false
}

// find looks a table up and counts.
func (w *worker) find(id uint8, t *table, k *flow.Key) *entry {
	if w.timer.on {
		return w.findTimed(id, t, k)
	}
	e := w.scratch.find(t, k)
	w.tally.looked(id, t.live, e != nil)
	return e
}

func (w *worker) findTimed(id uint8, t *table, k *flow.Key) *entry {
	w.timer.acted(sinceBegin())
	start := sinceBegin()
	e := w.scratch.find(t, k)
	w.timer.since = sinceBegin()
	w.timer.looked = w.timer.since - start - clockCost
	w.timer.at = w.tally.looked(id, t.live, e != nil)
	return e
}

var processBegan = time.Now()

// sinceBegin reads the clock, the monotonic one only.
func sinceBegin() time.Duration { return time.Since(processBegan) }

// clockCost is what lies between two readings of the clock one after the other.
var clockCost = func() time.Duration {
	all := make([]time.Duration, 501)
	for i := range all {
		start := sinceBegin()
		all[i] = sinceBegin() - start
	}
	slices.Sort(all)
	return all[len(all)/2]
}()
