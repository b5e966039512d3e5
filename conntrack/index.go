package conntrack

import (
	"math/bits"
	"sync"
	"sync/atomic"
)

// index finds connections by key: an array of chain heads, the chains running
// through the cells themselves (cell.chain), so that inserting allocates
// nothing. Both keys of a connection are in it. A reference is a slot and a
// direction in one number.
//
// Chains change under stripe locks: a chain belongs to one of the stripes, and
// whoever inserts or removes a connection holds the stripes of both its keys,
// the lower one taken first. Lookups hold nothing. A lookup may stand in a cell
// that is taken out, and put into another chain, under its feet; so the end of
// a chain says which chain it is, and a lookup that comes out at another end
// starts again (the idea is that of Linux's hlist_nulls). A cell is always put
// at the head of a chain, so that a lookup that falls back to the head of its
// own chain has all of it still to come.
//
// A connection is linked under both keys while its generation is even, which no
// lookup takes for a connection; then one store makes it live under both.
type index struct {
	heads   []atomic.Uint32
	stripes *[stripeCount]sync.Mutex
}

// ref is slot<<1 | direction; as the end of a chain, atEnd and the chain's
// number. A head that was never used is 0.
type ref = uint32

const (
	atEnd       = ref(1 << 31)
	stripeCount = 1024 // as Linux has locks for conntrack
	// maxChain is how long a chain may become. With a secret hash and twice as
	// many heads as keys, chance makes one of ten in a million tables.
	maxChain = 80
	// headsPerEntry is the chain heads for each connection that fits.
	headsPerEntry = 4
	// restarts is how often a lookup begins again before it takes the lock.
	restarts = 8
)

func makeRef(slot uint32, dir int) ref { return slot<<1 | uint32(dir) }

// newIndex makes an index for n connections. It never grows: that would stop
// the table for as long as it takes to move every connection.
func newIndex(n int) index {
	return index{
		heads:   make([]atomic.Uint32, max(16, headsPerEntry*n)),
		stripes: new([stripeCount]sync.Mutex),
	}
}

// bucket is the chain of a hash.
func (x *index) bucket(hash uint64) uint32 {
	high, _ := bits.Mul64(hash, uint64(len(x.heads)))
	return uint32(high)
}

// find is the reference and generation of a key, whose chain is b.
func (x *index) find(a *arena, b uint32, w *keyWords) (r ref, gen uint32, ok bool) {
	for range restarts {
		r, gen, sure := x.walk(a, b, w)
		if sure {
			return r, gen, r != 0
		}
	}
	x.stripes[b%stripeCount].Lock()
	defer x.stripes[b%stripeCount].Unlock()
	r, gen, _ = x.walk(a, b, w)
	return r, gen, r != 0
}

// walk looks for a key in a chain; r is 0 when it is not there. It is not sure
// of that when it came out of the chain somewhere else.
func (x *index) walk(a *arena, b uint32, w *keyWords) (r ref, gen uint32, sure bool) {
	r = x.heads[b].Load()
	for range 2 * maxChain {
		switch {
		case r == 0 || r == atEnd|b:
			return 0, 0, true
		case r&atEnd != 0:
			return 0, 0, false
		}
		c := a.at(r >> 1)
		if gen, ok := c.holds(r&1, w); ok {
			return r, gen, true
		}
		r = c.chain[r&1].Load()
	}
	return 0, 0, false
}

// lockPair takes the stripes of two chains.
func (x *index) lockPair(a, b uint32) {
	a, b = min(a%stripeCount, b%stripeCount), max(a%stripeCount, b%stripeCount)
	x.stripes[a].Lock()
	if a != b {
		x.stripes[b].Lock()
	}
}

func (x *index) unlockPair(a, b uint32) {
	a, b = a%stripeCount, b%stripeCount
	x.stripes[a].Unlock()
	if a != b {
		x.stripes[b].Unlock()
	}
}

// search looks for a key in a chain whose stripe is held, and counts the
// chain's references up to it.
func (x *index) search(a *arena, b uint32, w *keyWords) (found bool, length int) {
	r := x.heads[b].Load()
	for r != 0 && r&atEnd == 0 {
		c := a.at(r >> 1)
		if _, ok := c.holds(r&1, w); ok {
			return true, length
		}
		r = c.chain[r&1].Load()
		length++
	}
	return false, length
}

// link puts one key of an entry at the head of a chain whose stripe is held.
func (x *index) link(a *arena, b uint32, r ref) {
	next := x.heads[b].Load()
	if next == 0 {
		next = atEnd | b
	}
	setHalf(&a.at(r >> 1).chain[r&1], next)
	setHalf(&x.heads[b], r)
}

// unlink takes one key of an entry out of a chain whose stripe is held and in
// which it must be.
func (x *index) unlink(a *arena, b uint32, r ref) {
	at := &x.heads[b]
	for {
		next := at.Load()
		c := a.at(next >> 1)
		if next == r {
			setHalf(at, c.chain[r&1].Load())
			return
		}
		at = &c.chain[next&1]
	}
}
