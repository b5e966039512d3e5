package conntrack

import (
	"sync"
	"sync/atomic"
)

// Shares: how much of the table each port holds, so that one pod cannot fill it
// for all, and how fast a port may begin connections. A port's connections that
// may be evicted, because they were never answered or are over, stand in a list
// of the port's by age; so a victim is found without searching the table.

// portShare is one port's part of a table.
type portShare struct {
	count   atomic.Int64  // connections that began here
	bucket  atomic.Int64  // rateLimit's state
	refused atomic.Uint64 // packets, for whatever DropReason

	mu             sync.Mutex
	oldest, newest atomic.Uint32 // slots; changed under mu
}

// shares is the shares of a table by port number: pages of 256, made when a
// port of theirs is first seen.
type shares struct {
	limit rateLimit
	pages [256]atomic.Pointer[sharePage]
}

type sharePage [256]portShare

// lastShare is the share of all ports whose numbers do not fit into 16 bits:
// OpenFlow's reserved ones, in practice.
const lastShare = 1<<16 - 1

// of is a port's share. A Scratch begins with a copy of its parent's.
func (s *shares) of(t *Table, port uint32) *portShare {
	port = min(port, lastShare)
	at := &s.pages[port>>8]
	for {
		if p := at.Load(); p != nil {
			return &p[port&0xff]
		}
		fresh := new(sharePage)
		if t.parent != nil {
			fresh.copy(t.parent.shares.pages[port>>8].Load())
		}
		at.CompareAndSwap(nil, fresh)
	}
}

func (p *sharePage) copy(from *sharePage) {
	if from == nil {
		return
	}
	for i := range p {
		p[i].count.Store(from[i].count.Load())
		p[i].bucket.Store(from[i].bucket.Load())
	}
}

// all calls f with every share that may be in use, and its port.
func (s *shares) all(f func(port uint32, s *portShare)) {
	for i := range s.pages {
		if p := s.pages[i].Load(); p != nil {
			for j := range p {
				f(uint32(i<<8|j), &p[j])
			}
		}
	}
}

// tick is the unit of cell.since, about a millisecond; 32 bits of it go round
// in seven weeks.
const tickBits = 20

// join puts a connection behind the others that may be evicted. The caller
// holds the cell's lock, or nobody finds the connection yet.
func (s *portShare) join(a *arena, slot uint32, now int64) {
	c := a.at(slot)
	setHalf(&c.since, uint32(now>>tickBits))
	s.mu.Lock()
	last := s.newest.Load()
	setHalf(&c.older, last)
	setHalf(&c.newer, 0)
	if last == 0 {
		setHalf(&s.oldest, slot)
	} else {
		setHalf(&a.at(last).newer, slot)
	}
	setHalf(&s.newest, slot)
	s.mu.Unlock()
}

// leave takes a connection out of the list. The caller holds the cell's lock, or
// nobody finds the connection yet.
func (s *portShare) leave(a *arena, slot uint32) {
	c := a.at(slot)
	s.mu.Lock()
	older, newer := c.older.Load(), c.newer.Load()
	if older == 0 {
		setHalf(&s.oldest, newer)
	} else {
		setHalf(&a.at(older).newer, newer)
	}
	if newer == 0 {
		setHalf(&s.newest, older)
	} else {
		setHalf(&a.at(newer).older, older)
	}
	s.mu.Unlock()
}

// DefaultNewRate is how many connections a port may begin in a second.
const DefaultNewRate = 20000

// rateBurst is how many nanoseconds' worth of new connections may come at once.
const rateBurst = 2e9

// rateLimit is a token bucket for each port. A bucket's state is one number,
// the time at which it will be full again (the generic cell rate algorithm of
// ATM, ITU-T I.371).
type rateLimit struct {
	interval atomic.Int64 // nanoseconds a token takes; 0 for no limit
}

// SetNewRate lets a port begin n connections in a second, after a burst of two
// seconds' worth: DefaultNewRate when n is 0, without limit when n is negative.
// A packet above that is dropped; connections that exist are not touched.
func (t *Table) SetNewRate(n int) {
	switch {
	case n < 0:
		t.shares.limit.interval.Store(0)
	case n == 0:
		t.shares.limit.interval.Store(1e9 / DefaultNewRate)
	default:
		t.shares.limit.interval.Store(max(1e9/int64(n), 1))
	}
}

// take takes one token of a port's, if there is one.
func (l *rateLimit) take(s *portShare, now int64) bool {
	interval := l.interval.Load()
	for interval > 0 {
		before := s.bucket.Load()
		full := max(before, now) + interval
		switch {
		case full-now > rateBurst:
			return false
		case s.bucket.CompareAndSwap(before, full):
			return true
		}
	}
	return true
}

// giveBack gives back a token that was taken for a connection that did not begin.
func (l *rateLimit) giveBack(s *portShare) { s.bucket.Add(-l.interval.Load()) }
