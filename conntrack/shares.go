package conntrack

import (
	"sync"
	"sync/atomic"

	"github.com/antrail/antrail/conntrack/proto"
	"github.com/antrail/antrail/conntrack/store"
	"github.com/antrail/antrail/conntrack/tuple"
	"github.com/antrail/antrail/packet"
)

// Shares: how much of the table each port holds, and how fast it may begin connections. So one
// pod cannot fill the table for all. A connection belongs to the port of its first packet, in
// every zone. Each port has lists of its evictable connections, by age. So eviction needs no
// search of the table (evict.go, fair.go).

// portShare is one port's part of a table.
type portShare struct {
	count   atomic.Int64  // connections that began here
	bucket  atomic.Int64  // rateLimit's state
	dropped atomic.Uint64 // packets, for any DropReason
	evicted atomic.Uint64 // connections that made room for others
	many    bool          // of Config.SharedPorts; never changes

	mu    sync.Mutex
	lists [evictable]store.List
}

// listed says in which of its port's lists a connection is.
type listed uint8

const (
	// spare: neither end would miss the connection (proto.State.Missed).
	spare listed = iota
	// answered: both ends take part, and the protocol has no state machine (UDP,
	// ICMP and others), so that a later packet begins the connection again.
	answered
	// unlisted: the connection is never evicted.
	unlisted
	evictable = unlisted
)

// listOf is the list for a connection.
func listOf(e *store.Entry) listed { return listFor(e.Flags, e.Keys[tuple.Original].Proto) }

// listOfCell is the list for the connection in a cell. The caller holds the cell's lock.
func listOfCell(c *store.Cell) listed {
	w := c.KeyWords(tuple.Original)
	return listFor(c.Flags(), w.Proto())
}

func listFor(flags proto.Flags, protocol uint8) listed {
	switch {
	case flags&store.Expendable != 0:
		return spare
	case protocol == packet.ProtoTCP, protocol == packet.ProtoSCTP:
		return unlisted
	}
	return answered
}

// shares is the shares of a table by port number.
type shares struct {
	limit rateLimit
	pages paged[portShare]
	// pods and shared count the ports that hold connections: those of one sender
	// each, and those of Config.SharedPorts.
	pods, shared atomic.Int64
}

// countConnections counts connections of a share; n may be negative.
func (s *shares) countConnections(of *portShare, n int64) {
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

// lastShare is the share of all ports whose numbers exceed 16 bits. In practice these are
// OpenFlow's reserved ports.
const lastShare = 1<<16 - 1

// ofPort is a port's share. A Scratch begins with a copy of its parent's.
func (s *shares) ofPort(t *Table, port uint32) *portShare {
	no := uint16(min(port, lastShare))
	if t.parent == nil {
		return s.pages.at(no)
	}
	return s.pages.over(no, &t.parent.shares.pages, func(s, from *portShare) {
		s.many = from.many
		s.count.Store(from.count.Load())
		s.bucket.Store(from.bucket.Load())
	})
}

// move moves a connection from one list to the end of another. The caller holds the cell's
// lock, or no other goroutine can find the connection yet.
func (s *portShare) move(a *store.Arena, slot uint32, from, to listed, now int64) {
	if from == to {
		return
	}
	s.mu.Lock()
	if from != unlisted {
		s.lists[from].Remove(a, slot)
	}
	if to != unlisted {
		s.lists[to].Append(a, slot, now)
	}
	s.mu.Unlock()
}

// DefaultNewRate is how many connections a port may begin in a second.
const DefaultNewRate = 20000

// rateBurst is the largest burst, in nanoseconds' worth of new connections.
const rateBurst = 2e9

// rateLimit is a token bucket for each port. A bucket's state is one number,
// the time at which it will be full again (the generic cell rate algorithm of
// ATM, ITU-T I.371).
type rateLimit struct {
	interval atomic.Int64 // nanoseconds for a token; 0 means no limit
}

// SetNewRate lets a port begin n connections in a second, after a burst of two seconds' worth.
// 0 means DefaultNewRate, a negative number means no limit. A packet that would begin more
// connections is dropped. Existing connections stay.
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

// takeToken takes one token of a port, if one is available.
func (l *rateLimit) takeToken(s *portShare, now int64) bool {
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

// returnToken returns a token that was taken for a connection that did not begin.
func (l *rateLimit) returnToken(s *portShare) { s.bucket.Add(-l.interval.Load()) }
