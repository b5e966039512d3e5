package dataplane

import (
	"time"

	"github.com/antrail/antrail/flow"
)

// What tables cost is known of one walk in Config.TimeEvery, which is timed from end to
// end: each lookup, and what its entry does until the next lookup, ct() and
// groups included. A walk that is timed takes no stretches and draws none, so
// that each of its tables has its time, and none the time of drawing. Packets
// that are replayed do not walk, and are not timed.
//
// The clock is read three times before and after a lookup, twice without anything
// between: so each walk tells what reading it costs then and there, which is taken
// off. What was read is summed up when the walk is over. Walks longer than
// mostTimed, in which the worker's thread had to wait, or of more than mostMarks
// lookups are left out.

const (
	timeEvery = 1021 // unless it is configured
	mostTimed = 200 * time.Microsecond
	mostMarks = 64
)

// TableTimes is what packets cost in a table, of those that were timed.
type TableTimes struct {
	Timed uint64 `json:"timed"` // lookups
	// Lookup and Actions are what these took together, and what their entries
	// did until the next lookup or the end of the walk.
	Lookup  time.Duration `json:"lookupNS"`
	Actions time.Duration `json:"actionsNS"`
}

// MeanLookup is what a lookup takes; 0 when none was timed.
func (t TableTimes) MeanLookup() time.Duration { return t.mean(t.Lookup) }

// MeanActions is what an entry's actions take; 0 when none was timed.
func (t TableTimes) MeanActions() time.Duration { return t.mean(t.Actions) }

func (t TableTimes) mean(d time.Duration) time.Duration {
	return max(0, d) / time.Duration(max(t.Timed, 1)) // less than reading the clock seems to take is nothing
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
	every int // how many walks have one that is timed
	walks int // since one was timed
	on    bool
	n     int // of marks that the walk has
	marks *[mostMarks]mark
}

// mark is a lookup of the walk, and the clock before and after it.
type mark struct {
	table               *tableTally
	asked, began, found time.Duration
}

// begin counts a walk, and turns the timer on for one in every so many.
func (c *timer) begin() {
	if c.walks++; c.walks >= c.every {
		c.walks, c.on, c.n = 0, true, 0
	}
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
	m := &w.timer.marks[min(w.timer.n, mostMarks-1)]
	w.timer.n++
	m.asked = sinceBegin()
	m.began = sinceBegin()
	e := w.scratch.find(t, k)
	m.found = sinceBegin()
	m.table = w.tally.looked(id, t.live, e != nil)
	return e
}

// end ends the walk, and counts what its tables took.
func (c *timer) end() {
	end := sinceBegin()
	c.on = false
	if c.n == 0 || c.n > mostMarks || end-c.marks[0].asked > mostTimed {
		return
	}
	reading, marks := time.Duration(0), c.marks[:c.n]
	for i := range marks {
		reading += marks[i].began - marks[i].asked
	}
	reading /= time.Duration(c.n)
	for i := range marks {
		m, next := &marks[i], end
		if i+1 < len(marks) {
			next = marks[i+1].asked
		}
		m.table.times.Timed++
		m.table.times.Lookup += m.found - m.began - reading
		m.table.times.Actions += next - m.found - reading
	}
}

var processBegan = time.Now()

// sinceBegin reads the clock, the monotonic one only.
func sinceBegin() time.Duration { return time.Since(processBegan) }
