package dataplane

import (
	"time"

	"github.com/antrail/antrail/dataplane/lookup"
	"github.com/antrail/antrail/dataplane/program"
	"github.com/antrail/antrail/flow"
)

// The cost of tables is measured in one walk of Config.TimeEvery, which is timed from end
// to end. It has each lookup, and what its entry does until the next lookup, ct() and
// groups included. A walk that is timed replays no megaflows and records none. So each of
// its tables has its time, and none the time of recording. Packets that are replayed do
// not walk, and are not timed.
//
// The clock is read three times before and after a lookup, twice without anything
// between. So each walk shows what reading costs then and there, which is taken off. What
// was read is summed up when the walk is over. Walks longer than mostTimed, in which the
// worker's thread had to wait, or of more than mostMarks lookups are left out.

const (
	timeEvery = 1021 // unless it is configured
	mostTimed = 200 * time.Microsecond
	mostMarks = 64
)

// timer times a walk now and then. It belongs to the worker's goroutine.
type timer struct {
	every int // how many walks have one that is timed
	walks int // since one was timed
	on    bool
	n     int // of marks that the walk has
	marks *[mostMarks]mark
}

// mark is a lookup of the walk, and the clock before and after it.
type mark struct {
	table                *program.TableCount
	lookup, began, found time.Duration
}

// countWalk counts a walk, and turns the timer on for one in every so many.
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

// end ends the walk, and counts what its tables took.
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

// sinceBegin reads the clock, the monotonic one only.
func sinceBegin() time.Duration { return time.Since(processBegan) }
