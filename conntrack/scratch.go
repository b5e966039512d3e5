package conntrack

// A Scratch is a table laid over another one: it finds the other's connections
// and copies them before it changes anything, so that a traced packet meets
// the truth and leaves no mark on it. It has the other's secret, so NAT
// chooses what it would have chosen.

// scratchSize is the connections a Scratch's index is laid out for: those that
// one packet touches.
const scratchSize = 64

// Scratch is a table that sees t's connections as they are when it first meets
// them, and changes none of them. It is for a few packets: it is made quickly
// and holds its copies until it is dropped.
func (t *Table) Scratch() *Table {
	t.guard.enter()
	defer t.guard.leave()
	return &Table{
		secret: t.secret, index: newIndex(scratchSize), clock: t.clock, timeouts: t.timeouts,
		reserved: t.reserved, limits: t.limits.clone(), sweeper: sweeper{last: t.sweeper.last},
		seqCheck: t.seqCheck, strict: t.strict, parent: t, shadowed: map[handle]struct{}{},
	}
}

// adopt copies the parent's live connection of a key, unless it was copied
// before (and has gone since).
func (t *Table) adopt(k *key, now int64) (slot uint32, dir int, ok bool) {
	found, from, dir, ok := t.parent.peek(k, now)
	if !ok {
		return 0, 0, false
	}
	if _, copied := t.shadowed[from]; copied {
		return 0, 0, false
	}
	t.shadowed[from] = struct{}{}
	slot, e := t.slab.alloc()
	gen := e.gen
	*e = found
	e.gen = gen
	t.link(slot)
	return slot, dir, true
}

// peek is a copy of the live connection of a key, and where it stands. Unlike
// find it changes nothing.
func (t *Table) peek(k *key, now int64) (found entry, at handle, dir int, ok bool) {
	t.guard.enter()
	defer t.guard.leave()
	r := t.index.find(&t.slab, t.secret.hash(k, 0), k)
	if r == 0 {
		return entry{}, handle{}, 0, false
	}
	e := t.slab.at(r >> 1)
	return *e, handle{r >> 1, e.gen}, int(r & 1), e.expires > now
}
