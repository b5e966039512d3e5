package conntrack

import (
	"sync"
	"sync/atomic"

	"github.com/antrail/antrail/packet"
)

// Shares: how much of the table each port holds, so that one pod cannot fill it
// for all, and how fast a port may begin connections. The port that a
// connection's first packet came in by holds the connection, in every zone.
// Connections that may be evicted stand in lists of their port, by age: so a
// victim is found without a search of the table (evict.go, fair.go).

// portShare is one port's part of a table.
type portShare struct {
	count   atomic.Int64  // connections that began here
	bucket  atomic.Int64  // rateLimit's state
	refused atomic.Uint64 // packets, for whatever DropReason
	evicted atomic.Uint64 // connections that made room for others
	many    bool          // of Config.SharedPorts; never changes

	mu    sync.Mutex
	lists [evictable]ageList
}

// ageList is a list of connections by age. It changes under its share's mu.
type ageList struct {
	oldest, newest atomic.Uint32 // slots
	length         atomic.Int32
}

// listed says in which of its port's lists a connection stands.
type listed uint8

const (
	// spare: neither end would miss the connection (entry.missed).
	spare listed = iota
	// answered: both ends take part, and the protocol has no state machine (UDP,
	// ICMP and others), so that a later packet begins the connection again.
	answered
	// unlisted: the connection is never evicted.
	unlisted
	evictable = unlisted
)

// list is the list that the connection stands in, or has to stand in.
func (e *entry) list() listed { return listOf(e.flags, e.keys[original].proto) }

// list is the same of a cell, whose lock the caller holds.
func (c *cell) list() listed {
	w := c.keyWords(original)
	return listOf(c.flags(), w.proto())
}

func listOf(flags entryFlags, proto uint8) listed {
	switch {
	case flags&expendable != 0:
		return spare
	case proto == packet.ProtoTCP, proto == packet.ProtoSCTP:
		return unlisted
	}
	return answered
}

// shares is the shares of a table by port number: pages of 256, made when a
// port of theirs is first seen.
type shares struct {
	limit rateLimit
	pages [256]atomic.Pointer[sharePage]
	// pods and shared count the ports that hold connections: those of one sender
	// each, and those of Config.SharedPorts.
	pods, shared atomic.Int64
}

// add counts connections of a share; n may be negative.
func (s *shares) add(of *portShare, n int64) {
	after := of.count.Add(n)
	step := int64(0)
	switch {
	case after > 0 && after-n <= 0:
		step = 1
	case after <= 0 && after-n > 0:
		step = -1
	default:
		return
	}
	if of.many {
		s.shared.Add(step)
	} else {
		s.pods.Add(step)
	}
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
		p[i].many = from[i].many
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

// move takes a connection from one list to the end of another. The caller holds
// the cell's lock, or no other goroutine finds the connection yet.
func (s *portShare) move(a *arena, slot uint32, from, to listed, now int64) {
	if from == to {
		return
	}
	s.mu.Lock()
	if from != unlisted {
		s.lists[from].leave(a, slot)
	}
	if to != unlisted {
		s.lists[to].join(a, slot, now)
	}
	s.mu.Unlock()
}

// join puts a connection behind the others. The caller holds the share's mu.
func (l *ageList) join(a *arena, slot uint32, now int64) {
	c := a.at(slot)
	last := l.newest.Load()
	setHalf(&c.since, uint32(now>>tickBits))
	setHalf(&c.older, last)
	setHalf(&c.newer, 0)
	if last == 0 {
		setHalf(&l.oldest, slot)
	} else {
		setHalf(&a.at(last).newer, slot)
	}
	setHalf(&l.newest, slot)
	l.length.Add(1)
}

// leave takes a connection out of the list. The caller holds the share's mu.
func (l *ageList) leave(a *arena, slot uint32) {
	c := a.at(slot)
	older, newer := c.older.Load(), c.newer.Load()
	if older == 0 {
		setHalf(&l.oldest, newer)
	} else {
		setHalf(&a.at(older).newer, newer)
	}
	if newer == 0 {
		setHalf(&l.newest, older)
	} else {
		setHalf(&a.at(newer).older, older)
	}
	l.length.Add(-1)
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
