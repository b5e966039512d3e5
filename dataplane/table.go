package dataplane

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

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
	timed, nanos  atomic.Uint64 // lookups that were timed, and how long they took
	learned       learnedEntries
	mayLearn      atomic.Bool // never false again
}

// learnedNone says whether the table has no learned entry now.
func (s *tableState) learnedNone() bool { return s.learned.count.Load() == 0 }

// lookupTime is the mean of the lookups that were timed; 0 when none was.
func (s *tableState) lookupTime() time.Duration {
	n := s.timed.Load()
	if n == 0 {
		return 0
	}
	return time.Duration(s.nanos.Load() / n)
}

// lookup implements lookups: learned and static entries as one table.
func (t *table) lookup(k *flow.Key, best *row, s *lookupScratch) *row {
	if t.live.learned.count.Load() != 0 {
		best = t.live.learned.lookup(k, best, s)
	}
	return t.classifier.lookup(k, best, s)
}

// completed implements lookups.
func (t *table) completed(k *flow.Key, best *row, s *lookupScratch) *row {
	if t.live.learned.count.Load() != 0 {
		best = t.live.learned.completed(k, best, s)
	}
	return t.classifier.completed(k, best, s)
}

// learnedEntries are the entries that learn actions made: few, short-lived and
// written from the packet path, so they have a classifier of their own under
// a lock, which is not even taken while there are none.
type learnedEntries struct {
	count      atomic.Int64
	mu         sync.RWMutex
	classifier *classifier // edited in place; nil until the first is learned
}

// lookup implements lookups.
func (l *learnedEntries) lookup(k *flow.Key, best *row, s *lookupScratch) *row {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.classifier.lookup(k, best, s)
}

// completed implements lookups.
func (l *learnedEntries) completed(k *flow.Key, best *row, s *lookupScratch) *row {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.classifier.completed(k, best, s)
}

// add installs e, or refreshes the entry of the same identity, keeping its
// counters. limit bounds the learned entries with e's cookie, as Open vSwitch
// counts them; 0 means no limit. Past it nothing is installed. It says whether e
// is the first where there were none.
func (l *learnedEntries) add(e *entry, limit uint32) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.classifier == nil {
		l.classifier = newClassifier(nil)
	}
	old := l.classifier.installed(&e.Match, e.Priority)
	if old == nil && limit != 0 && l.withCookie(e.Cookie) >= int(limit) {
		return false
	}
	if old != nil {
		installed := e.installed
		e.inherit(old)
		e.installed = installed
		e.used.Store(installed)
	}
	l.classifier.insert(e)
	first := l.count.Load() == 0
	l.settle()
	return first
}

// settle makes a change of the classifier ready for lookups.
func (l *learnedEntries) settle() {
	l.classifier.sort()
	l.count.Store(int64(l.classifier.entries))
}

// withCookie counts the learned entries of a cookie.
func (l *learnedEntries) withCookie(cookie uint64) (n int) {
	l.classifier.all(func(e *entry) {
		if e.Cookie == cookie {
			n++
		}
	})
	return n
}

// removeIf takes out every learned entry that gone holds for, and returns how
// many.
func (l *learnedEntries) removeIf(gone func(*entry) bool) int {
	if l.count.Load() == 0 {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var leave []*entry
	l.classifier.all(func(e *entry) {
		if gone(e) {
			leave = append(leave, e)
		}
	})
	for _, e := range leave {
		l.classifier.remove(e)
	}
	l.settle()
	return len(leave)
}

// all visits every learned entry, in no order.
func (l *learnedEntries) all(visit func(*entry)) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.classifier != nil {
		l.classifier.all(visit)
	}
}

// list returns the learned entries in the order of dumps.
func (l *learnedEntries) list() []*entry {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.classifier == nil {
		return nil
	}
	return l.classifier.list()
}
