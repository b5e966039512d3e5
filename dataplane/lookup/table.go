package lookup

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/antrail/antrail/flow"
)

// Table is one table of a program. Its static entries are immutable: a bundle makes another
// Table. The next program shares the learned entries and the counters.
type Table struct {
	Static *Classifier
	makers []*Entry // entries with a delete_learned learn action
	Live   *TableState
}

// Editable returns a table for a bundle to change, which shares everything unchanged with t. t
// may be nil. Without keep it has no static entries. In both cases it has t's counters and
// learned entries.
func (t *Table) Editable(keep bool) *Table {
	n := &Table{Live: new(TableState), Static: &Classifier{}}
	if t != nil {
		n.Live = t.Live
		if keep {
			n.Static, n.makers = t.Static, slices.Clone(t.makers)
		}
	}
	n.Static = n.Static.editable()
	return n
}

// Add installs an entry. It replaces an entry with the same identity.
func (t *Table) Add(e *Entry) {
	if old := t.Static.insert(e); old != nil {
		t.forgetLearner(old)
	}
	if e.Learner {
		t.makers = append(t.makers, e)
	}
}

// Remove removes an entry.
func (t *Table) Remove(e *Entry) {
	t.Static.remove(e)
	t.forgetLearner(e)
}

func (t *Table) forgetLearner(e *Entry) {
	t.makers = slices.DeleteFunc(t.makers, func(l *Entry) bool { return l == e })
}

// Learners returns the entries whose learn actions have delete_learned. A nil table has none.
func (t *Table) Learners() []*Entry {
	if t == nil {
		return nil
	}
	return t.makers
}

// TableState is the part of a table that packets change.
type TableState struct {
	Lookups, Hits atomic.Uint64
	Learned       LearnedEntries
	MayLearn      atomic.Bool // never reset to false

	timed                  atomic.Uint64
	lookupTime, actionTime atomic.Int64 // nanoseconds of all timed lookups
}

// lookup implements lookups. It searches learned and static entries as one table.
func (t *Table) lookup(k *flow.Key, best *row, s *Scratch) *row {
	if c := t.Live.Learned.current.Load(); c != nil {
		best = c.lookup(k, best, s)
	}
	return t.Static.lookup(k, best, s)
}

// completed implements lookups.
func (t *Table) completed(k *flow.Key, best *row, s *Scratch) *row {
	if c := t.Live.Learned.current.Load(); c != nil {
		best = c.completed(k, best, s)
	}
	return t.Static.completed(k, best, s)
}

// TableTimes is the timed cost of packets in a table.
type TableTimes struct {
	Timed uint64 `json:"timed"` // lookups
	// Lookup is the time of all timed lookups. Actions is the time from each lookup to the
	// next one, or to the end of the walk.
	Lookup  time.Duration `json:"lookupNS"`
	Actions time.Duration `json:"actionsNS"`
}

// MeanLookup is the mean time of a lookup, or 0 if none was timed.
func (t TableTimes) MeanLookup() time.Duration { return t.mean(t.Lookup) }

// MeanActions is the mean time of an entry's actions, or 0 if none was timed.
func (t TableTimes) MeanActions() time.Duration { return t.mean(t.Actions) }

func (t TableTimes) mean(d time.Duration) time.Duration {
	return max(0, d) / time.Duration(max(t.Timed, 1)) // reading the clock may seem to take longer than d
}

// AddTimes adds times to the table's.
func (t *TableState) AddTimes(n TableTimes) {
	t.timed.Add(n.Timed)
	t.lookupTime.Add(int64(n.Lookup))
	t.actionTime.Add(int64(n.Actions))
}

// Times returns the table's times.
func (t *TableState) Times() TableTimes {
	return TableTimes{t.timed.Load(), time.Duration(t.lookupTime.Load()), time.Duration(t.actionTime.Load())}
}
