package dataplane

// Taking: a remembered stretch is done again for another packet. When there is
// none its tables are looked up.

// step goes on from a table, by a stretch or by one lookup. It returns the next
// table, or -1.
func (k *walk) step(id uint8) int {
	s := k.w.stretches
	if s == nil || s.drawing.on || s.prog != k.prog || k.trace != nil || k.w.timer.on {
		return k.visit(id)
	}
	if t := k.prog.tables[id]; t == nil || !t.live.learned.none() {
		return k.visit(id)
	}
	if r := s.find(id, &k.key); r == nil {
		s.begin(k, id)
	} else if k.fits(r) {
		return k.take(r)
	}
	return k.visit(id)
}

// fits says whether the packet may take a stretch to its end: neither its TTL
// runs out nor has it been in too many tables or goes too deep.
func (k *walk) fits(r *stretch) bool {
	return k.lookups+len(r.visits) <= maxLookups && k.depth+r.deepest <= maxDepth &&
		(r.ttls == 0 || k.key[ttlAt] > r.ttls)
}

// take does a stretch, and what comes behind it in the same list of actions. It
// returns the next table, or -1.
func (k *walk) take(r *stretch) int {
	for i := range r.writes {
		w := &r.writes[i]
		k.key.SetWord(w.index, w.value, w.mask)
	}
	for _, a := range r.sets {
		k.act(a, nil)
	}
	k.lookups += len(r.visits)
	k.last, k.met = r.visits[len(r.visits)-1].id, r.met
	k.w.stretches.credit(r, k.frame.Len())
	k.w.stretches.prior = &r.next
	k.w.rec.stretch(r)
	if r.drop.reason != NotDropped {
		k.table, k.entry = r.drop.table, r.drop.entry
		k.drop(r.drop.reason)
	}
	k.table, k.entry = r.end.table, r.end.entry
	k.depth += r.depth // walkTable takes it back
	if len(r.end.rest) > 0 {
		return k.run(r.end.rest)
	}
	return r.end.next
}

// credit counts a packet for a stretch.
func (s *stretches) credit(r *stretch, size int) {
	s.count[StretchTaken]++
	if r.packets == 0 {
		s.fresh = append(s.fresh, r)
	}
	r.packets++
	r.bytes += uint64(size)
}

// tellDirectly credits packets, the last of which came at now, to a stretch's entries
// and tables.
func (r *stretch) tellDirectly(packets, bytes uint64, now int64) {
	creditVisits(r.visits, packets, bytes, now)
}

// creditAll takes what the stretches counted to entries and tables. Any goroutine may
// call it, one at a time (Switch.creditNow).
func (s *stretches) creditAll() {
	s.listing.Lock()
	s.listed = append(append(s.listed, s.past...), s.runs...)
	s.past = nil
	s.listing.Unlock()
	for _, r := range s.listed {
		r.sum.take(r.tellDirectly)
	}
	clear(s.listed)
	s.listed = s.listed[:0]
}

// tellStretches shows others what the batch's stretches counted, as cache.tell does.
func (w *worker) tellStretches() {
	s := w.stretches
	if s == nil {
		return
	}
	for _, r := range s.fresh {
		if r.sum.add(r.packets, r.bytes, w.now); r.users == 0 { // nobody finds it any more
			r.sum.take(r.tellDirectly)
		}
		r.shape.served.Add(r.packets)
		r.packets, r.bytes = 0, 0
	}
	clear(s.fresh)
	s.fresh = s.fresh[:0]
	if s.round++; s.round%halfLife == 0 {
		s.age()
	}
	s.publish()
}

// halfLife is in how many batches what a shape served counts half.
const halfLife = 1 << 14

// age makes what shapes served long ago count less.
func (s *stretches) age() {
	for _, all := range s.shapes {
		for _, o := range all {
			o.passed /= 2
		}
	}
}
