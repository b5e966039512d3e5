package lookup

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/antrail/antrail/flow"
)

// LearnedEntries are a table's entries from learn actions. They are short-lived, and packets
// write them. They have their own Classifier:
//
//  1. Lookups read it without a lock.
//  2. A change edits a copy and publishes it by one atomic store, so a lookup sees either all of
//     the change or none.
//  3. Among thousands of entries, most new ones replace only one chunk, also by one store
//     (subtable.putLive).
//  4. Only a packet that learns something new takes the lock. With session affinity that is a
//     client's first packet. A packet that learns a known entry restarts its timeouts.
//
// A megaflow ends before a table with learned entries. So lookups here need no examined bits, and
// Classifier.values stays empty.
type LearnedEntries struct {
	current atomic.Pointer[Classifier] // nil while there are none
	size    atomic.Int64

	Changing sync.Mutex     // one change at a time
	cookies  map[uint64]int // entries by cookie
}

// Count is the number of learned entries.
func (l *LearnedEntries) Count() int { return int(l.size.Load()) }

// None reports whether there are no learned entries.
func (l *LearnedEntries) None() bool { return l.current.Load() == nil }

// edited returns a copy of the classifier to change. The caller holds Changing.
func (l *LearnedEntries) edited() *Classifier {
	if c := l.current.Load(); c != nil {
		return c.editable()
	}
	return (&Classifier{learned: true}).editable()
}

// publish publishes an edited classifier to lookups.
func (l *LearnedEntries) publish(c *Classifier) {
	if c.entries == 0 {
		c = nil
	} else {
		c.Sort()
	}
	l.current.Store(c)
}

// counted adds n to the counts that include e.
func (l *LearnedEntries) counted(e *Entry, n int) {
	if l.cookies == nil {
		l.cookies = map[uint64]int{}
	}
	if l.cookies[e.Cookie] += n; l.cookies[e.Cookie] == 0 {
		delete(l.cookies, e.Cookie)
	}
	l.size.Add(int64(n))
}

// Refresh restarts the timeouts of the installed entry that equals e. It returns false if there is
// none.
func (l *LearnedEntries) Refresh(e *flow.Entry, now int64) bool {
	c := l.current.Load()
	if c == nil {
		return false
	}
	old := c.Installed(e.Match, e.Priority)
	if old == nil || old.Cookie != e.Cookie || old.IdleTimeout != e.IdleTimeout || old.HardTimeout != e.HardTimeout || !slices.Equal(old.Actions, e.Actions) {
		return false
	}
	old.InstalledAt.Store(now)
	old.Used.Store(now)
	return true
}

// Add installs e. If an entry of the same identity exists, e replaces it and keeps its counters.
// limit is the largest number of learned entries with e's cookie, as in Open vSwitch; 0 means no
// limit. Beyond the limit Add installs nothing. first is true if there was no entry before.
func (l *LearnedEntries) Add(e *Entry, limit uint32) (first bool) {
	l.Changing.Lock()
	defer l.Changing.Unlock()
	c := l.current.Load()
	var old *Entry
	if c != nil {
		old = c.Installed(e.Match, e.Priority)
	}
	switch {
	case old != nil:
		e.Counters = old.Counters
		e.Used.Store(e.InstalledAt.Load())
		l.counted(old, -1)
	case limit != 0 && l.cookies[e.Cookie] >= int(limit):
		return false
	case c != nil && c.insertLive(e):
		l.counted(e, 1)
		return false
	}
	edited := l.edited()
	edited.insert(e)
	l.publish(edited)
	l.counted(e, 1)
	return c == nil
}

// RemoveIf removes every learned entry for which gone is true, and returns them. It searches
// before it takes the lock, and checks each entry again under it.
func (l *LearnedEntries) RemoveIf(gone func(*Entry) bool) (removed []*Entry) {
	var leave []*Entry
	l.All(func(e *Entry) {
		if gone(e) {
			leave = append(leave, e)
		}
	})
	if len(leave) == 0 {
		return nil
	}
	l.Changing.Lock()
	defer l.Changing.Unlock()
	c := l.edited()
	for _, e := range leave {
		if gone(e) && c.Installed(e.Match, e.Priority) == e { // neither used nor replaced meanwhile
			c.remove(e)
			l.counted(e, -1)
			removed = append(removed, e)
		}
	}
	if len(removed) > 0 {
		l.publish(c)
	}
	return removed
}

// All visits every learned entry, in undefined order.
func (l *LearnedEntries) All(visit func(*Entry)) {
	if c := l.current.Load(); c != nil {
		c.All(visit)
	}
}

// List returns the learned entries in the order of dumps.
func (l *LearnedEntries) List() (all []*Entry) {
	l.All(func(e *Entry) { all = append(all, e) })
	slices.SortFunc(all, byPriority)
	return all
}
