package flowcache

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/antrail/antrail/dataplane/lookup"
	"github.com/antrail/antrail/dataplane/program"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
)

// Megaflows is the second level: it stores parts of walks. A new connection between the same
// pods, with another port, replays the megaflows of an earlier one without a lookup. Actions
// between two megaflows, as a ct(), run for each packet.
//
//	megaflow.go   one megaflow
//	megaflows.go  finding it, and voiding it
//	megaflowmasks.go its mask
//	recording.go  a walk records what it examines and does
//
// Megaflows that begin in the same table and examined the same bits have one mask, a shape. A
// packet is compared with the shapes of its table, the one that matched most first. A table has
// at most maxShapes shapes. If another one comes, the shape that matched least is widened by its
// bits. So a miss costs a bounded number of searches, whatever a sender does. The shapes with
// most traffic stay as narrow as they are.
//
// A change of the pipeline voids the megaflows through the tables that it changes. The first
// entry that a table learns voids those through tables that can learn.
//
// One goroutine uses Megaflows, except for CreditAll and Totals. A nil Megaflows is off.
type Megaflows struct {
	table[remembered, *remembered]
	Totals MegaflowTotals

	prog     *program.Program
	learners uint64
	awoken   uint64

	shapes   [256][]*shape // by table where they begin
	drawn    uint64        // shapes so far
	list     []*Megaflow
	unused   []uint32          // places in list
	byHash   map[uint64]uint32 // index into list
	fresh    []*Megaflow       // with packets of this batch
	past     []*Megaflow       // removed ones, with packets not yet credited
	rec      recording
	reshaped bool // Totals lack the latest shapes

	// Listing is held to change list and past. Only the worker changes list.
	Listing sync.Mutex
	listed  []*Megaflow // scratch memory of CreditAll

	words [megaflowWords]uint64 // of the shape compared last
	hash  uint64                // of words
	start guess                 // the first megaflow of the last walk
	prior *guess                // the guess after the megaflow that this packet replayed last
}

// MegaflowTotals is a worker's megaflow counters that other goroutines read.
type MegaflowTotals struct {
	Entries, Shapes atomic.Uint64
	list            atomic.Pointer[[]*shape]
	Counts
}

const (
	// megaflowWords is the largest number of key words in a mask. A megaflow that examined more
	// is not stored.
	megaflowWords = 20
	// maxShapes is how many masks the megaflows of one table may have.
	maxShapes = 6
	// DefaultMegaflows is how many entries a worker's megaflows may have: 12 MB.
	DefaultMegaflows = 1 << 16
)

// NewMegaflows makes a level that grows to at most a number of entries. While a megaflow is
// recorded, lookups write their examined bits to scratch.
func NewMegaflows(most int, scratch *lookup.Scratch) *Megaflows {
	s := &Megaflows{table: newTable[remembered](most), byHash: map[uint64]uint32{}}
	s.rec.scratch = scratch
	s.prior = &s.start
	return s
}

// BeginWalk begins a walk in a program. It voids the megaflows that a change of the pipeline has
// made stale. learners counts the changes of which tables may learn. awoken counts how often a
// table learned its first entry.
func (s *Megaflows) BeginWalk(prog *program.Program, learners, awoken uint64) {
	if s == nil {
		return
	}
	s.prior = &s.start
	if s.prog == prog && s.learners == learners && s.awoken == awoken {
		return
	}
	switch {
	case s.prog == nil || prog == nil || s.learners != learners:
		s.forget()
	default:
		if s.awoken != awoken {
			s.void(func(r *Megaflow) bool { return r.MayLearn })
		}
		if s.prog != prog {
			s.adoptProgram(prog)
		}
	}
	s.prog, s.learners, s.awoken = prog, learners, awoken
}

// adoptProgram voids the megaflows through tables that the program changes.
func (s *Megaflows) adoptProgram(prog *program.Program) {
	var changed [4]uint64
	for id, t := range prog.Tables {
		if s.prog.Tables[id] != t {
			changed[id/64] |= 1 << (id % 64)
		}
	}
	s.void(func(r *Megaflow) bool {
		touched := uint64(0)
		for i := range changed {
			touched |= r.tables[i] & changed[i]
		}
		return touched != 0
	})
}

// void voids the megaflows for which untrue is true.
func (s *Megaflows) void(untrue func(*Megaflow) bool) {
	for _, r := range s.list {
		if !r.void && untrue(r) {
			r.invalidate()
			s.Count[telemetry.MegaflowVoid]++
		}
	}
	s.dirty = true
	for id, all := range s.shapes {
		s.shapes[id] = slices.DeleteFunc(all, func(o *shape) bool { return o.megaflows == 0 })
	}
	s.reshaped = true
}

// forget drops all megaflows and shapes.
func (s *Megaflows) forget() {
	s.clear()
	s.clearList()
	clear(s.shapes[:])
	s.reshaped = true
}

// clearList drops all megaflows. CreditAll still credits their packets, and EndBatch those of the
// current batch.
func (s *Megaflows) clearList() {
	s.Listing.Lock()
	for _, r := range s.list {
		if r.users = 0; r.pending.Any() {
			s.past = append(s.past, r)
		}
	}
	s.list = nil
	s.Listing.Unlock()
	s.unused = s.unused[:0]
	clear(s.byHash)
}

// guess is the place of the entry that the last packet used at this point of its walk. Most
// packets go the same way, and then need no hash and no search.
type guess struct{ set, way uint32 }

// guessed returns the megaflow that the last packet replayed here. It returns nil if this packet
// does not replay it from a table.
func (s *Megaflows) guessed(table uint8, k *flow.Key) *Megaflow {
	g := s.prior
	if int(g.set) >= len(s.places) {
		return nil
	}
	e := &s.places[g.set][g.way%ways]
	if e.epoch != s.epoch {
		return nil
	}
	r := s.list[e.run]
	if r.void || r.shape.table != table || !e.matches(r.shape.mask, k) {
		return nil
	}
	r.shape.passed++
	e.used = s.round
	return r
}

// Awoken returns how often a table had learned its first entry when the megaflows were last
// checked (BeginWalk).
func (s *Megaflows) Awoken() uint64 { return s.awoken }

// Usable says whether a walk in a program may search for a megaflow. It may not while it records
// one.
func (s *Megaflows) Usable(prog *program.Program) bool {
	return s != nil && !s.rec.on && s.prog == prog
}

// Find returns the megaflow that a packet with a key replays from a table, or nil.
func (s *Megaflows) Find(table uint8, k *flow.Key) *Megaflow {
	if r := s.guessed(table, k); r != nil {
		return r
	}
	all := s.shapes[table]
	for i, o := range all {
		r := s.findUnder(o, k)
		if r == nil {
			continue
		}
		o.passed++
		if i > 0 && o.passed > all[i-1].passed {
			all[i], all[i-1] = all[i-1], o
		}
		return r
	}
	return nil
}

// findUnder returns the megaflow of a shape that a packet replays, or nil.
func (s *Megaflows) findUnder(o *shape, k *flow.Key) *Megaflow {
	s.readWords(o, k)
	want := tag(s.hash)
	for _, at := range twoSets(s.hash, len(s.tags)) {
		tags := &s.tags[at]
		for i := range tags {
			if tags[i] != want {
				continue
			}
			e := &s.places[at][i]
			if !s.valid(e) {
				continue
			}
			if r := s.list[e.run]; r.shape == o && e.has(s.words[:len(o.mask)]) {
				e.used = s.round
				*s.prior = guess{at, uint32(i)}
				return r
			}
		}
	}
	return nil
}

// readWords reads the words of a shape from a key, and hashes them.
func (s *Megaflows) readWords(o *shape, k *flow.Key) {
	h := o.seed
	for i, m := range o.mask {
		w := k.Word(int(m.Index)) & m.Mask
		s.words[i] = w
		h = lookup.Mix(h, w)
	}
	s.hash = h
}

// valid says whether an entry is still valid.
func (s *Megaflows) valid(e *remembered) bool {
	return e.epoch == s.epoch && !s.list[e.run].void
}

// Replayed counts a packet of size bytes that replays a megaflow.
func (s *Megaflows) Replayed(r *Megaflow, size int) {
	s.prior = &r.next
	s.Count[telemetry.MegaflowHit]++
	if r.packets == 0 {
		s.fresh = append(s.fresh, r)
	}
	r.packets++
	r.bytes += uint64(size)
}

// put stores a megaflow for the current words, if the port has room.
func (s *Megaflows) put(r *Megaflow, port uint32) {
	if s.full() {
		s.grow()
		s.clearList()
		for _, all := range s.shapes {
			for _, o := range all {
				o.megaflows = 0
			}
		}
	}
	p := s.claim(s.hash, port, s.valid)
	switch p.rank {
	case keep:
		s.Count[telemetry.MegaflowRefused]++
		return
	case ofOwn, ofGreedy:
		s.Count[telemetry.MegaflowDisplaced]++
	}
	s.Count[telemetry.MegaflowKept]++
	e := &s.places[p.set][p.way]
	if s.vacate(e) {
		s.unuse(e.run)
	}
	*e = remembered{run: s.intern(r), words: s.words}
	e.slot = s.occupy(p, s.hash)
	s.list[e.run].users++
}

// unuse removes a use of a megaflow, and frees the megaflow after the last one.
func (s *Megaflows) unuse(run uint32) {
	r := s.list[run]
	if r.users--; r.users > 0 {
		return
	}
	r.invalidate()
	r.pending.Take(r.credit)
	if s.byHash[r.hash] == run {
		delete(s.byHash, r.hash)
	}
	s.unused = append(s.unused, run)
}

// intern returns the index of the megaflow equal to r. If there is none, it keeps a copy of r.
func (s *Megaflows) intern(r *Megaflow) uint32 {
	h := HashVisits(r.Visits, lookup.Mix(r.shape.seed, uint64(len(r.End.Rest))))
	i, ok := s.byHash[h]
	if ok && !s.list[i].void && s.list[i].equal(r) {
		return i
	}
	kept := r.clone(h)
	s.Listing.Lock()
	defer s.Listing.Unlock()
	if n := len(s.unused); n > 0 {
		i, s.unused = s.unused[n-1], s.unused[:n-1]
		s.list[i] = kept
	} else {
		i = uint32(len(s.list))
		s.list = append(s.list, kept)
	}
	s.byHash[h] = i
	r.shape.megaflows++
	return i
}

// CreditAll credits the packets of the megaflows to entries and tables. Any goroutine may call
// it, one at a time.
func (s *Megaflows) CreditAll() {
	s.Listing.Lock()
	s.listed = append(append(s.listed, s.past...), s.list...)
	s.past = nil
	s.Listing.Unlock()
	for _, r := range s.listed {
		r.pending.Take(r.credit)
	}
	clear(s.listed)
	s.listed = s.listed[:0]
}

// EndBatch publishes the counts of the batch.
func (s *Megaflows) EndBatch(now int64) {
	for _, r := range s.fresh {
		if r.pending.Add(r.packets, r.bytes, now); r.users == 0 { // no list has it any more
			r.pending.Take(r.credit)
		}
		r.shape.served.Add(r.packets)
		r.packets, r.bytes = 0, 0
	}
	clear(s.fresh)
	s.fresh = s.fresh[:0]
	if s.round++; s.round%halfLife == 0 {
		s.ageShapes()
	}
	s.publish()
}

// publish adds the batch's counts to Totals.
func (s *Megaflows) publish() {
	t := &s.Totals
	t.Move(&s.Count)
	if s.dirty {
		s.dirty = false
		shapes := 0
		for _, all := range s.shapes {
			shapes += len(all)
		}
		t.Entries.Store(uint64(s.live))
		t.Shapes.Store(uint64(shapes))
	}
	if s.reshaped {
		s.reshaped = false
		list := slices.Concat(s.shapes[:]...)
		t.list.Store(&list)
	}
}
