package store

import "sync/atomic"

// List is a list of connections by age. It runs through the cells (Cell.older, Cell.newer). A
// cell is in at most one list. The zero value is an empty list. The caller's lock guards changes.
// A value that is read without that lock may be out of date.
type List struct {
	first, last atomic.Uint32 // slots
	length      atomic.Uint32
}

// tickBits is the unit of time of lists: 2^20 nanoseconds, about a millisecond. A cell holds 32
// bits of it, which wrap around in seven weeks.
const tickBits = 20

// Oldest is the slot of the connection that was listed first; 0 for none.
func (l *List) Oldest() uint32 { return l.first.Load() }

// Len is how many connections are in the list.
func (l *List) Len() uint32 { return l.length.Load() }

// Next is the slot of the connection listed next after the cell's; 0 for none.
func (c *Cell) Next() uint32 { return c.newer.Load() }

// TicksAfterListing is how many ticks a moment lies after the listing of the cell. It is negative
// for an earlier moment.
func (c *Cell) TicksAfterListing(moment int64) int32 {
	return int32(uint32(moment>>tickBits) - c.since.Load())
}

// Append appends a connection at now. The caller holds the list's lock.
func (l *List) Append(a *Arena, slot uint32, now int64) {
	c := a.At(slot)
	last := l.last.Load()
	setHalf(&c.since, uint32(now>>tickBits))
	setHalf(&c.older, last)
	setHalf(&c.newer, 0)
	if last == 0 {
		setHalf(&l.first, slot)
	} else {
		setHalf(&a.At(last).newer, slot)
	}
	setHalf(&l.last, slot)
	setHalf(&l.length, l.length.Load()+1)
}

// Remove removes a connection from the list. The caller holds the list's lock.
func (l *List) Remove(a *Arena, slot uint32) {
	c := a.At(slot)
	older, newer := c.older.Load(), c.newer.Load()
	if older == 0 {
		setHalf(&l.first, newer)
	} else {
		setHalf(&a.At(older).newer, newer)
	}
	if newer == 0 {
		setHalf(&l.last, older)
	} else {
		setHalf(&a.At(newer).older, older)
	}
	setHalf(&l.length, l.length.Load()-1)
}

// Span is a list that no other goroutine uses.
type Span struct {
	first, last uint32 // slots, 0 for an empty list
	length      uint32
}

// Append appends a connection at now.
func (s *Span) Append(a *Arena, slot uint32, now int64) {
	c := a.At(slot)
	*unshared(&c.since) = uint32(now >> tickBits)
	*unshared(&c.older) = s.last
	*unshared(&c.newer) = 0
	if s.last == 0 {
		s.first = slot
	} else {
		*unshared(&a.At(s.last).newer) = slot
	}
	s.last = slot
	s.length++
}

// Adopt appends a span. The caller holds the list's lock, or no other goroutine uses the list.
func (l *List) Adopt(a *Arena, s Span) {
	if s.first == 0 {
		return
	}
	before := l.last.Load()
	if before == 0 {
		l.first.Store(s.first)
	} else {
		a.At(before).newer.Store(s.first)
		a.At(s.first).older.Store(before)
	}
	l.last.Store(s.last)
	l.length.Add(s.length)
}
