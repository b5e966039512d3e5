package dataplane

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/antrail/antrail/flow"
)

// table is one table of a program. Its static entries and their classifier
// never change: a bundle makes a new table. The learned entries and the
// counters live on from one program to the next.
type table struct {
	entries    []*entry // by priority, falling, then by installation
	classifier *classifier
	learners   []*entry // those that make entries and take them along when they go
	live       *tableState
}

// byPriority is the order of a table's entries.
func byPriority(a, b *entry) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.seq, b.seq))
}

// tableEdit is what a bundle does to one table.
type tableEdit struct {
	base *table // what stays unless it is gone; nil for nothing
	gone map[*entry]bool
	come map[flow.Identity]*entry
}

// compile makes the table after an edit. Its counters and learned entries are
// those of old, the table before, or nil.
func (d *tableEdit) compile(old *table) *table {
	t := &table{live: new(tableState)}
	if old != nil {
		t.live = old.live
	}
	come := sorted(d.come)
	if d.base == nil {
		t.entries, t.classifier, t.learners = come, newClassifier(come), learners(come)
		return t
	}
	t.entries = merged(d.base.entries, d.gone, come)
	t.learners = merged(d.base.learners, d.gone, learners(come))
	t.classifier = d.base.classifier.edited(slices.Collect(maps.Keys(d.gone)), come)
	return t
}

// merged is entries without those that are gone and with those that come, both
// in order.
func merged(entries []*entry, gone map[*entry]bool, come []*entry) []*entry {
	all := make([]*entry, 0, len(entries)+len(come))
	for _, e := range entries {
		if gone[e] {
			continue
		}
		for len(come) > 0 && byPriority(come[0], e) < 0 {
			all, come = append(all, come[0]), come[1:]
		}
		all = append(all, e)
	}
	return append(all, come...)
}

// sorted lists entries by priority, falling, and within one by installation.
func sorted(m map[flow.Identity]*entry) []*entry {
	return slices.SortedFunc(maps.Values(m), byPriority)
}

// tableState is the part of a table that packets change.
type tableState struct {
	lookups, hits atomic.Uint64
	learned       learnedEntries
}

// lookup implements lookupFunc: learned and static entries as one table.
func (t *table) lookup(k *flow.Key, best *entry, soft []softMatch) (*entry, []softMatch) {
	best, soft = t.live.learned.lookup(k, best, soft)
	return t.classifier.lookup(k, best, soft)
}

// learnedEntries are the entries that learn actions made: few, short-lived and
// written from the packet path, so they have a classifier of their own under
// a lock, which is not even taken while there are none.
type learnedEntries struct {
	count      atomic.Int64
	mu         sync.RWMutex
	byIdentity map[flow.Identity]*entry
	classifier classifier
}

func (l *learnedEntries) lookup(k *flow.Key, best *entry, soft []softMatch) (*entry, []softMatch) {
	if l.count.Load() == 0 {
		return best, soft
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.classifier.lookup(k, best, soft)
}

// add installs e, or refreshes the entry of the same identity, keeping its
// counters. limit bounds the learned entries with e's cookie, as Open vSwitch
// counts them; 0 means no limit. Past it nothing is installed.
func (l *learnedEntries) add(e *entry, limit uint32) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byIdentity == nil {
		l.byIdentity = make(map[flow.Identity]*entry)
	}
	id := e.Identity()
	old := l.byIdentity[id]
	if old == nil && limit != 0 && l.withCookie(e.Cookie) >= int(limit) {
		return false
	}
	if old != nil {
		installed := e.installed
		e.inherit(old)
		e.installed = installed
		e.used.Store(installed)
		l.classifier.remove(old)
	}
	l.byIdentity[id] = e
	l.classifier.insert(e)
	l.classifier.sort()
	l.count.Store(int64(len(l.byIdentity)))
	return true
}

// withCookie counts the learned entries of a cookie.
func (l *learnedEntries) withCookie(cookie uint64) (n int) {
	for _, e := range l.byIdentity {
		if e.Cookie == cookie {
			n++
		}
	}
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
	n := 0
	for id, e := range l.byIdentity {
		if gone(e) {
			delete(l.byIdentity, id)
			l.classifier.remove(e)
			n++
		}
	}
	l.classifier.sort()
	l.count.Store(int64(len(l.byIdentity)))
	return n
}

// list returns the learned entries in no order.
func (l *learnedEntries) list() []*entry {
	l.mu.RLock()
	defer l.mu.RUnlock()
	all := make([]*entry, 0, len(l.byIdentity))
	for _, e := range l.byIdentity {
		all = append(all, e)
	}
	return all
}
