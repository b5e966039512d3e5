package store

import (
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/antrail/antrail/conntrack/tuple"
)

// Index finds connections by key. It is an array of chain heads. The chains run through
// the cells (Cell.chain), so inserting allocates nothing. Both keys of a connection are in
// the index. A reference is a slot and a direction in one number.
//
//  1. A chain belongs to one of 1024 stripes. A worker that inserts or removes a connection holds
//     the locks of the stripes of both keys (LockPair). It takes the lower one first, so two
//     workers never wait for each other.
//  2. A lookup holds no lock. Meanwhile another worker may unlink the cell that the lookup reads,
//     and link it into another chain. So the end of a chain holds the chain's number. A lookup
//     that comes to the end of another chain starts again, as in Linux's hlist_nulls.
//  3. A cell is always linked at the head of a chain. If a relinked cell leads a lookup back to
//     the head of its own chain, the lookup misses no cell.
//  4. A connection is linked under both keys while its generation is even, so no lookup finds it.
//     Then one store of the generation makes it live under both keys at the same moment.
type Index struct {
	heads   []atomic.Uint32
	stripes *[stripeCount]sync.Mutex
}

// ref is slot<<1 | direction. The end of a chain is atEnd | the chain's number. An unused head is
// 0.
type ref = uint32

// The limits of an index.
const (
	atEnd       = ref(1 << 31)
	stripeCount = 1024 // as many as Linux's conntrack has locks
	// MaxChain is the largest length of a chain. With a secret hash and twice as many heads as
	// keys, a chain of ten occurs by chance in one of a million tables.
	MaxChain = 80
	// headsPerEntry is the number of chain heads for each connection.
	headsPerEntry = 4
	// restarts is how often a lookup starts again before it takes the lock.
	restarts = 8
)

func makeRef(slot uint32, dir int) ref { return slot<<1 | uint32(dir) }

// NewIndex makes an index for n connections. It never grows, because the table would stop while
// all connections move.
func NewIndex(n int) Index {
	return Index{
		heads:   make([]atomic.Uint32, max(16, headsPerEntry*n)),
		stripes: new([stripeCount]sync.Mutex),
	}
}

// MapPages writes each page of an index that has no connection yet. A page's first write takes
// longer than linking a connection. So the pages are written in advance for a table that must be
// restored quickly.
func (x *Index) MapPages() {
	clear(x.heads)
}

// Bucket is the number of the chain of a hash.
func (x *Index) Bucket(hash uint64) uint32 {
	high, _ := bits.Mul64(hash, uint64(len(x.heads)))
	return uint32(high)
}

// Find finds the connection of a key whose chain is b, and the direction of the key. The
// connection may end at any moment. Then the generation in its handle is out of date.
func (x *Index) Find(a *Arena, b uint32, w *tuple.Words) (h Handle, dir int, ok bool) {
	for range restarts {
		if r, gen, sure := x.walk(a, b, w); sure {
			return Handle{r >> 1, gen}, int(r & 1), r != 0
		}
	}
	x.stripes[b%stripeCount].Lock()
	defer x.stripes[b%stripeCount].Unlock()
	r, gen, _ := x.walk(a, b, w)
	return Handle{r >> 1, gen}, int(r & 1), r != 0
}

// walk searches for a key in a chain. r is 0 if the key is absent. sure is false if the walk has
// left the chain.
func (x *Index) walk(a *Arena, b uint32, w *tuple.Words) (r ref, gen uint32, sure bool) {
	r = x.heads[b].Load()
	for range 2 * MaxChain {
		switch {
		case r == 0 || r == atEnd|b:
			return 0, 0, true
		case r&atEnd != 0:
			return 0, 0, false
		}
		c := a.At(r >> 1)
		if gen, ok := c.holds(r&1, w); ok {
			return r, gen, true
		}
		r = c.chain[r&1].Load()
	}
	return 0, 0, false
}

// LockPair takes the locks of two chains, which may be the same.
func (x *Index) LockPair(a, b uint32) {
	a, b = min(a%stripeCount, b%stripeCount), max(a%stripeCount, b%stripeCount)
	x.stripes[a].Lock()
	if a != b {
		x.stripes[b].Lock()
	}
}

// UnlockPair releases the locks of LockPair.
func (x *Index) UnlockPair(a, b uint32) {
	a, b = a%stripeCount, b%stripeCount
	x.stripes[a].Unlock()
	if a != b {
		x.stripes[b].Unlock()
	}
}

// Search searches for a key in a chain. The caller holds the chain's lock. length counts the
// references before the key.
func (x *Index) Search(a *Arena, b uint32, w *tuple.Words) (found bool, length int) {
	r := x.heads[b].Load()
	for r != 0 && r&atEnd == 0 {
		c := a.At(r >> 1)
		if _, ok := c.holds(r&1, w); ok {
			return true, length
		}
		r = c.chain[r&1].Load()
		length++
	}
	return false, length
}

// Link inserts one key of a connection at the head of a chain. The caller holds the chain's lock.
func (x *Index) Link(a *Arena, b, slot uint32, dir int) {
	r := makeRef(slot, dir)
	next := x.heads[b].Load()
	if next == 0 {
		next = atEnd | b
	}
	setHalf(&a.At(r >> 1).chain[r&1], next)
	setHalf(&x.heads[b], r)
}

// Unlink removes one key of a connection from a chain that contains it. The caller holds the
// chain's lock.
func (x *Index) Unlink(a *Arena, b, slot uint32, dir int) {
	r := slot<<1 | uint32(dir)
	at := &x.heads[b]
	for {
		next := at.Load()
		c := a.At(next >> 1)
		if next == r {
			setHalf(at, c.chain[r&1].Load())
			return
		}
		at = &c.chain[next&1]
	}
}

// WarmHead reads the head of a chain. The result has no meaning.
func (x *Index) WarmHead(b uint32) uint64 { return uint64(x.heads[b].Load()) }

// WarmChain reads the first cell of a chain. The result has no meaning.
func (x *Index) WarmChain(a *Arena, b uint32) uint64 {
	r := x.heads[b].Load()
	if r == 0 || r&atEnd != 0 {
		return 0
	}
	c := a.At(r >> 1)
	return c.Head() + c.keys[r&1][0].Load()
}
