package conntrack

// A Scratch is a table laid over another one: it finds the other's connections
// and copies them before it changes anything, so that a traced packet meets
// the truth and leaves no mark on it. It has the other's secret, so NAT
// chooses what it would have chosen.

// scratchSize is the connections a Scratch has room for: those that one packet
// touches.
const scratchSize = 64

// Scratch is a table that sees t's connections as they are when it first meets
// them, and changes none of them. It is for a few packets: it is made quickly
// and holds its copies until it is dropped.
func (t *Table) Scratch() *Table {
	s := newTable(&Config{
		Now: t.clock, Timeouts: t.timeouts, Seed: t.secret, StrictWindow: t.strict, Reserved: t.reserved,
	}, newArena(scratchSize))
	s.limits.max.Store(t.limits.max.Load())
	s.limits.total.Store(t.limits.total.Load())
	s.limits.byDefault.Store(t.limits.byDefault.Load())
	s.shares.limit.interval.Store(t.shares.limit.interval.Load())
	s.seqCheck.Store(t.seqCheck.Load())
	s.parent, s.shadowed = t, map[handle]struct{}{}
	return s
}

// Blank is a table like t for a few packets, without any connection and without
// limits: every packet begins one there.
func (t *Table) Blank() *Table {
	return newTable(&Config{
		Now: t.clock, Timeouts: t.timeouts, Seed: t.secret, StrictWindow: t.strict, Reserved: t.reserved,
		NewRate: -1, Max: scratchSize,
	}, newArena(scratchSize))
}

// adopt copies the parent's live connection of a key, unless it was copied
// before (and has gone since).
func (t *Table) adopt(k *key, now int64) (h handle, dir int, ok bool) {
	e, from, dir, ok := t.parent.peek(k, now)
	if !ok {
		return handle{}, 0, false
	}
	if _, copied := t.shadowed[from]; copied {
		return handle{}, 0, false
	}
	t.shadowed[from] = struct{}{}
	h, made := t.insert(&e, nil, now)
	return h, dir, made == inserted
}

// peek is a copy of the live connection of a key, and where it stands. Unlike
// find it changes nothing.
func (t *Table) peek(k *key, now int64) (e entry, at handle, dir int, ok bool) {
	w := k.words()
	r, gen, ok := t.index.find(t.arena, t.chain(&w, nil), &w)
	if !ok {
		return entry{}, handle{}, 0, false
	}
	at, ok = t.arena.read(r>>1, &e)
	t.fetch(&e)
	e.flags &^= away
	return e, at, int(r & 1), ok && at.gen == gen && e.expires > now
}
