package dataplane

import (
	"time"

	"github.com/antrail/antrail/dataplane/lookup"
	"github.com/antrail/antrail/dataplane/program"
	"github.com/antrail/antrail/flow"
)

// The cost of tables is measured in one walk of Config.TimeEvery, which is timed from end to end.
// It has the time of each lookup. It also has the time of the entry's actions until the next
// lookup, ct() and groups included. A timed walk replays no megaflows and records none. So each
// of its tables has its time, without the time of recording. Replayed packets do not walk, and
// are not timed.
//
// The clock is read three times around each lookup, twice without anything in between. So each
// walk measures what reading the clock costs, and subtracts it. The readings are summed when the
// walk is over. Walks longer than mostTimed are left out, because the worker's thread had to
// wait. So are walks of more than mostMarks lookups.

const (
	timeEvery = 1021 // the default
	mostTimed = 200 * time.Microsecond
	mostMarks = 64
)

// timer times one walk of many. It belongs to the worker's goroutine.
type timer struct {
	every int // one walk of this many is timed
	walks int // since the last timed one
	on    bool
	n     int // marks of this walk
	marks *[mostMarks]mark
}

// mark is a lookup of the walk, and the clock before and after it.
type mark struct {
	table                *program.TableCount
	lookup, began, found time.Duration
}

// countWalk counts a walk, and turns the timer on if the walk is to be timed.
func (c *timer) countWalk() {
	if c.walks++; c.walks >= c.every {
		c.walks, c.on, c.n = 0, true, 0
	}
}

// find looks a table up and counts.
func (w *worker) find(id uint8, t *lookup.Table, k *flow.Key) *lookup.Entry {
	if w.timer.on {
		return w.findTimed(id, t, k)
	}
	e := w.scratch.Find(t, k)
	w.batchCounts.CountLookup(id, t.Live, e != nil)
	return e
}

func (w *worker) findTimed(id uint8, t *lookup.Table, k *flow.Key) *lookup.Entry {
	m := &w.timer.marks[min(w.timer.n, mostMarks-1)]
	w.timer.n++
	m.lookup = sinceBegin()
	m.began = sinceBegin()
	e := w.scratch.Find(t, k)
	m.found = sinceBegin()
	m.table = w.batchCounts.CountLookup(id, t.Live, e != nil)
	return e
}

// end ends the walk, and counts the time of its tables.
func (c *timer) end() {
	end := sinceBegin()
	c.on = false
	if c.n == 0 || c.n > mostMarks || end-c.marks[0].lookup > mostTimed {
		return
	}
	reading, marks := time.Duration(0), c.marks[:c.n]
	for i := range marks {
		reading += marks[i].began - marks[i].lookup
	}
	reading /= time.Duration(c.n)
	for i := range marks {
		m, next := &marks[i], end
		if i+1 < len(marks) {
			next = marks[i+1].lookup
		}
		m.table.Times.Timed++
		m.table.Times.Lookup += m.found - m.began - reading
		m.table.Times.Actions += next - m.found - reading
	}
}

var processBegan = time.Now()

// sinceBegin reads the monotonic clock.
func sinceBegin() time.Duration { return time.Since(processBegan) }
