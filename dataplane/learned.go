package dataplane

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/antrail/antrail/flow"
)

// learnedEntries are the entries of a table that learn actions made: short-lived,
// and written from the packet path. They have a classifier of their own that is
// read without a lock. Whoever changes it edits a copy, which shares with it what
// the change does not touch, and publishes that by one atomic store. Most entries
// that come among thousands have room where they belong; for those one chunk is
// replaced, by one store as well (subtable.putLive). So a lookup waits for nobody,
// and meets an entry or does not.
//
// Locks are for who learns what was not known, and who removes: with session
// affinity a client's first packet, not the others. A packet that learns again
// what is there only begins its timeouts anew.
//
// Stretches end before a table with learned entries, and one that met the first of
// them on its way is void (Switch.awoken); so nobody asks which bits of a key told
// them apart, and values (classifier) are not kept.
type learnedEntries struct {
	current atomic.Pointer[classifier] // nil while there are none
	size    atomic.Int64

	mu      sync.Mutex     // one change at a time
	cookies map[uint64]int // entries by cookie
}

// count is how many there are.
func (l *learnedEntries) count() int { return int(l.size.Load()) }

// none says whether there are none now.
func (l *learnedEntries) none() bool { return l.current.Load() == nil }

// edited is a classifier like the current one, to be changed under the lock.
func (l *learnedEntries) edited() *classifier {
	if c := l.current.Load(); c != nil {
		return c.editable()
	}
	return (&classifier{learned: true}).editable()
}

// publish has lookups meet an edited classifier.
func (l *learnedEntries) publish(c *classifier) {
	if c.entries == 0 {
		c = nil
	} else {
		c.sort()
	}
	l.current.Store(c)
}

// counted keeps the numbers of entries, n more.
func (l *learnedEntries) counted(e *entry, n int) {
	if l.cookies == nil {
		l.cookies = map[uint64]int{}
	}
	if l.cookies[e.Cookie] += n; l.cookies[e.Cookie] == 0 {
		delete(l.cookies, e.Cookie)
	}
	l.size.Add(int64(n))
}

// refresh begins the timeouts of the entry that is as e anew, and says whether
// there is one.
func (l *learnedEntries) refresh(e *flow.Entry, now int64) bool {
	c := l.current.Load()
	if c == nil {
		return false
	}
	old := c.installed(&e.Match, e.Priority)
	if old == nil || old.Cookie != e.Cookie || old.IdleTimeout != e.IdleTimeout || old.HardTimeout != e.HardTimeout || !slices.Equal(old.Actions, e.Actions) {
		return false
	}
	old.installed.Store(now)
	old.used.Store(now)
	return true
}

// add installs e, in place of the entry of the same identity, whose counters it
// keeps. limit bounds the learned entries with e's cookie, as Open vSwitch
// counts them; 0 means no limit. Past it nothing is installed. It says whether e
// is the first where there were none.
func (l *learnedEntries) add(e *entry, limit uint32) (first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.current.Load()
	var old *entry
	if c != nil {
		old = c.installed(&e.Match, e.Priority)
	}
	switch {
	case old != nil:
		e.counters = old.counters
		e.used.Store(e.installed.Load())
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

// removeIf takes out every learned entry that gone holds for, and returns how
// many. It looks for them before it takes the lock.
func (l *learnedEntries) removeIf(gone func(*entry) bool) (n int) {
	var leave []*entry
	l.all(func(e *entry) {
		if gone(e) {
			leave = append(leave, e)
		}
	})
	if len(leave) == 0 {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.edited()
	for _, e := range leave {
		if gone(e) && c.installed(&e.Match, e.Priority) == e { // neither used nor replaced meanwhile
			c.remove(e)
			l.counted(e, -1)
			n++
		}
	}
	if n > 0 {
		l.publish(c)
	}
	return n
}

// all visits every learned entry, in no order.
func (l *learnedEntries) all(visit func(*entry)) {
	if c := l.current.Load(); c != nil {
		c.all(visit)
	}
}

// list returns the learned entries in the order of dumps.
func (l *learnedEntries) list() (all []*entry) {
	l.all(func(e *entry) { all = append(all, e) })
	slices.SortFunc(all, byPriority)
	return all
}
