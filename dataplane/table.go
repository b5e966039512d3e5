package dataplane

import (
	"slices"
	"sync/atomic"

	"github.com/antrail/antrail/flow"
)

// table is one table of a program. Its static entries and their classifier
// never change: a bundle makes a new table. The learned entries and the
// counters live on from one program to the next.
type table struct {
	classifier *classifier
	learners   []*entry // those that make entries and take them along when they go
	live       *tableState
}

// editable is a table that a bundle may change, sharing what it does not touch
// with t, which may be nil. Unless the entries are kept it begins empty; the
// counters and learned entries are t's.
func (t *table) editable(keep bool) *table {
	n := &table{live: new(tableState), classifier: &classifier{}}
	if t != nil {
		n.live = t.live
		if keep {
			n.classifier, n.learners = t.classifier, slices.Clone(t.learners)
		}
	}
	n.classifier = n.classifier.editable()
	return n
}

// add installs an entry, in place of one with the same identity.
func (t *table) add(e *entry) {
	if old := t.classifier.insert(e); old != nil {
		t.forgetLearner(old)
	}
	if learns(e) {
		t.learners = append(t.learners, e)
	}
}

// remove takes an entry out.
func (t *table) remove(e *entry) {
	t.classifier.remove(e)
	t.forgetLearner(e)
}

func (t *table) forgetLearner(e *entry) {
	t.learners = slices.DeleteFunc(t.learners, func(l *entry) bool { return l == e })
}

// tableState is the part of a table that packets change.
type tableState struct {
	lookups, hits atomic.Uint64
	learned       learnedEntries
	mayLearn      atomic.Bool // never false again

	timed                  atomic.Uint64
	lookupTime, actionTime atomic.Int64 // nanoseconds of all that were timed
}

// lookup implements lookups: learned and static entries as one table.
func (t *table) lookup(k *flow.Key, best *row, s *lookupScratch) *row {
	if c := t.live.learned.current.Load(); c != nil {
		best = c.lookup(k, best, s)
	}
	return t.classifier.lookup(k, best, s)
}

// completed implements lookups.
func (t *table) completed(k *flow.Key, best *row, s *lookupScratch) *row {
	if c := t.live.learned.current.Load(); c != nil {
		best = c.completed(k, best, s)
	}
	return t.classifier.completed(k, best, s)
}
