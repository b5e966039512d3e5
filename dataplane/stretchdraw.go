package dataplane

import (
	"cmp"
	"slices"

	"github.com/antrail/antrail/flow"
)

// Drawing: while a packet walks for which no stretch was remembered, the walk
// notes what it asks for and writes. Actions that are not known to depend on the
// key alone end the stretch.

// drawing is the stretch under way.
type drawing struct {
	key  flow.Key // when it began
	on   bool
	from uint8
	port uint32

	asked   asked   // but for what the stretch had written itself
	stretch stretch // its slices are used again and again
	calls   []call  // under way
}

// call is a resubmit() that other actions follow. Where something within it ends
// the stretch, the stretch ends before it: those actions are not the stretch's.
type call struct {
	stretch stretch // as it was
	end     stretchEnd
}

// draws says whether a stretch is under way.
func (s *stretches) draws() bool { return s != nil && s.drawing.on }

// maxVisits ends a stretch that runs in circles.
const maxVisits = 64

// begin starts a stretch in the table for which find has just given nothing.
func (s *stretches) begin(k *walk, from uint8) {
	s.count[StretchMiss]++
	d := &s.drawing
	d.on, d.from, d.port, d.key = true, from, k.inPort, k.key
	d.asked = asked{}
	d.asked.known[conjWord] = conjMask // no packet brings a conj_id along
	d.stretch = stretch{visits: d.stretch.visits[:0], writes: d.stretch.writes[:0], sets: d.stretch.sets[:0]}
	d.calls = d.calls[:0]
	s.scratch.asked = &d.asked
}

// enter ends the stretch under way before a table whose lookup is no part of it.
func (s *stretches) enter(id uint8, t *table) {
	if s.draws() && (!t.live.learned.none() || len(s.drawing.stretch.visits) == maxVisits) {
		s.end(stretchEnd{next: int(id)})
	}
}

// met notes what a lookup gave.
func (s *stretches) met(id uint8, t *table, e *entry) {
	if !s.draws() {
		return
	}
	d := &s.drawing
	v := visited{table: t.live, id: id}
	d.stretch.met = nil
	if e != nil {
		v.entry, d.stretch.met = e.counters, e.Entry
	}
	d.stretch.visits = append(d.stretch.visits, v)
	d.stretch.tables[id/64] |= 1 << (id % 64)
	d.stretch.meets = d.stretch.meets || t.live.mayLearn.Load()
}

// Where the key has the TTL, conj_id and in_port.
var (
	ttlWord, ttlMask   = wordOf(flow.IPTTL)
	conjWord, conjMask = wordOf(flow.ConjID)
	portWord, portMask = wordOf(flow.InPort)
)

// wordOf is the word in which a field lies, and its bits there.
func wordOf(id flow.FieldID) (index int, mask uint64) {
	var m flow.Key
	f := flow.FieldByID(id)
	f.Put(&m, flow.Ones(f.Bits), flow.Ones(f.Bits))
	return f.Off / 8, m.Word(f.Off / 8)
}

// does notes the first of some actions for the stretch under way, or ends it
// before that.
func (s *stretches) does(k *walk, actions []flow.Action) {
	d := &s.drawing
	switch a := actions[0].(type) {
	case *write:
		if a.index == portWord && a.mask&portMask != 0 { // a resubmit() ends that again
			s.endBefore(k, actions)
			return
		}
		d.stretch.writes = append(d.stretch.writes, keyWrite{a.index, a.value, a.mask})
		d.asked.known[a.index] |= a.mask
	case flow.GotoTable, flow.Conjunction, flow.Note:
	case *writeMAC:
		s.sets(k, actions, a.field, flow.Ones(48))
	case flow.SetField:
		s.sets(k, actions, a.Field, a.Mask)
	case flow.Load:
		id, _, mask := inPlace(a.Dst, a.Value)
		s.sets(k, actions, id, mask)
	case flow.DecTTL:
		d.stretch.sets = append(d.stretch.sets, a)
		d.stretch.ttls++
	case flow.Resubmit:
		s.resubmits(k, actions, a.InPort)
	default:
		s.endBefore(k, actions)
	}
}

// endBefore ends the stretch under way before some actions of the walk's list.
func (s *stretches) endBefore(k *walk, actions []flow.Action) {
	s.end(stretchEnd{rest: actions, next: -1, table: k.table, entry: k.entry})
}

// resubmits goes to another table with the stretch under way, to come back if
// actions follow.
func (s *stretches) resubmits(k *walk, actions []flow.Action, inPort uint32) {
	if inPort != flow.PortInPort {
		s.endBefore(k, actions)
		return
	}
	d := &s.drawing
	if len(actions) > 1 {
		d.calls = append(d.calls, call{d.stretch, stretchEnd{rest: actions, next: -1, table: k.table, entry: k.entry}})
	}
	d.stretch.depth++
	d.stretch.deepest = max(d.stretch.deepest, d.stretch.depth)
}

// returns comes back from a resubmit() that other actions follow. If a stretch is
// under way it was when the walk went there, and before that.
func (s *stretches) returns() {
	if !s.draws() {
		return
	}
	d := &s.drawing
	last := len(d.calls) - 1
	d.stretch.depth = d.calls[last].stretch.depth
	d.calls = d.calls[:last]
}

// sets notes the change of a header field, or ends the stretch before it.
func (s *stretches) sets(k *walk, actions []flow.Action, id flow.FieldID, mask flow.Value) {
	if places[id].size == 0 || id == flow.IPTTL {
		s.endBefore(k, actions)
		return
	}
	d := &s.drawing
	written := bitsOf(id, mask)
	d.asked.known.add(&written)
	d.stretch.tuple = d.stretch.tuple || places[id].cover >= pseudoSum
	d.stretch.sets = append(d.stretch.sets, actions[0])
}

// stop is for a reason to drop the packet, or NotDropped when a list of actions
// is done. It ends the stretch under way, if there is one, unless actions follow.
func (s *stretches) stop(k *walk, why DropReason) {
	if !s.draws() {
		return
	}
	if d := &s.drawing; why != NotDropped {
		d.stretch.drop = noted{why, k.table, k.entry}
	}
	if len(s.drawing.calls) == 0 {
		s.end(stretchEnd{next: -1, table: k.table, entry: k.entry})
	}
}

// abandon ends the stretch under way and does not remember it.
func (s *stretches) abandon() {
	if s != nil {
		s.drawing.on, s.scratch.asked = false, nil
	}
}

// end ends the stretch under way, and remembers it if its like came before.
func (s *stretches) end(e stretchEnd) {
	s.abandon()
	d := &s.drawing
	if len(d.stretch.visits) == 0 {
		return
	}
	if len(d.calls) > 0 {
		d.stretch, e = d.calls[0].stretch, d.calls[0].end
	}
	if d.stretch.ttls > 0 && d.asked.bits[ttlWord]&ttlMask != 0 {
		d.asked.bits[ttlWord] |= ttlMask // what dec_ttl made of it depends on all of it
	}
	if !s.once.seen(d.hash()) {
		s.count[StretchOnce]++
		return
	}
	o := s.shape(d.from, &d.asked.bits)
	if o == nil {
		s.count[StretchRefused]++
		return
	}
	d.stretch.end, d.stretch.shape = e, o
	s.read(o, &d.key)
	s.put(&d.stretch, d.port)
}

// hash is over all that the stretch asked for.
func (d *drawing) hash() uint64 {
	h := lookupSeed ^ uint64(d.from)
	for i, m := range d.asked.bits {
		if m != 0 {
			h = mix(h, m)
			h = mix(h, d.key.Word(i)&m)
		}
	}
	return h
}

// shape is one from a table that has all that was asked for: with just that mask,
// or a new one, or, when there are too many, the one that served least, made
// wider if need be. It is nil when the mask has too many words.
func (s *stretches) shape(from uint8, a *keyBits) *shape {
	all := s.shapes[from]
	for _, o := range all {
		if o.whole == *a {
			return o
		}
	}
	var least *shape
	if len(all) == maxShapes {
		least = slices.MinFunc(all, func(x, y *shape) int { return cmp.Compare(x.passed, y.passed) })
		if !a.add(&least.whole) {
			return least
		}
	}
	mask := a.list()
	if len(mask) > stretchWords {
		return nil
	}
	if least != nil {
		s.drop(from, least)
		s.count[StretchWidened]++
	}
	s.drawn++
	s.reshaped = true
	o := &shape{mask: mask, whole: *a, seed: mix(lookupSeed, s.drawn), table: from}
	s.shapes[from] = append(s.shapes[from], o)
	return o
}

// drop voids a shape's stretches.
func (s *stretches) drop(from uint8, o *shape) {
	for _, r := range s.runs {
		if r.shape == o && !r.void {
			r.leave()
			s.count[StretchVoid]++
		}
	}
	s.shapes[from] = slices.DeleteFunc(s.shapes[from], func(x *shape) bool { return x == o })
}

// intern is the index of the stretch equal to r, of which a copy is kept when
// there is none yet.
func (s *stretches) intern(r *stretch) uint32 {
	h := hashOf(r.visits, mix(r.shape.seed, uint64(len(r.end.rest))))
	i, ok := s.byHash[h]
	if ok && !s.runs[i].void && s.runs[i].equal(r) {
		return i
	}
	kept := *r
	kept.hash, kept.visits, kept.sets, kept.writes = h, slices.Clone(r.visits), slices.Clone(r.sets), merged(r.writes)
	kept.sum = new(owed)
	s.listing.Lock()
	defer s.listing.Unlock()
	if n := len(s.unused); n > 0 {
		i, s.unused = s.unused[n-1], s.unused[:n-1]
		s.runs[i] = &kept
	} else {
		i = uint32(len(s.runs))
		s.runs = append(s.runs, &kept)
	}
	s.byHash[h] = i
	r.shape.runs++
	return i
}

// equal says whether two stretches are the same but for their packets: what
// they write follows from the entries that they met.
func (r *stretch) equal(q *stretch) bool {
	a, b := &r.end, &q.end
	return r.shape == q.shape && a.next == b.next && r.drop == q.drop && len(a.rest) == len(b.rest) &&
		slices.Equal(r.visits, q.visits) && (len(a.rest) == 0 || &a.rest[0] == &b.rest[0])
}

// merged is writes with one for each word.
func merged(writes []keyWrite) (all []keyWrite) {
	for _, w := range writes {
		i := slices.IndexFunc(all, func(m keyWrite) bool { return m.index == w.index })
		if i < 0 {
			all = append(all, w)
			continue
		}
		all[i].value = all[i].value&^w.mask | w.value
		all[i].mask |= w.mask
	}
	return all
}
