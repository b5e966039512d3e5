package dataplane

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/antrail/antrail/flow"
)

// A walk is a row of stretches. Within a stretch it looks up tables, writes
// constants and goes to other tables, by resubmit() too; between two stretches it
// does something that depends on more than its key: ct(), a group, learn, an
// output, a table with learned entries. Given the bits of the key that the
// lookups of a stretch ask for, the stretch is always the same. So a worker remembers stretches too, beside whole walks
// (cache.go): a new connection like another one, between the same pods with
// another port, takes the same stretches without a lookup, and what lies between
// them is done for real, each time.
//
//	stretch.go        what is remembered, and where
//	stretchdraw.go    drawing: a walk notes what a stretch asks and does
//	stretchtake.go    taking: the stretch is done again for another packet
//	asked.go          which bits of a key a lookup asks for
//
// Stretches that begin in the same table and asked for the same bits, a mask,
// are a shape. A packet is compared with the shapes of its table, the one that
// served most first. There are at most maxShapes of them: where another one
// comes, the one that served least gets wider, by the bits that the other one
// asks for. So the cost of not finding anything has a bound, whoever sends, and
// the shapes of much traffic stay as narrow as they are.
//
// A change of the pipeline voids the stretches through the tables that it
// changes; the first entry that a table learns, those through tables that can
// learn.
//
// Each worker has stretches of its own, which share places among ports as the
// connection cache does (places.go). One that comes once is not remembered.
type stretches struct {
	tags   [][ways]uint32
	places [][ways]remembered
	most   int // entries that it may grow to
	live   int // entries of this epoch, at most: void ones are counted until displaced

	epoch    uint32
	round    uint32 // counts batches
	prog     *program
	learners uint64
	awoken   uint64

	shapes  [256][]*shape // by table where they begin
	drawn   uint64        // shapes so far
	runs    []*stretch
	unused  []uint32          // places in runs
	byHash  map[uint64]uint32 // index into runs
	fresh   []*stretch        // with packets of this batch
	past    []*stretch        // that are gone, with packets that entries do not know
	owners  owners
	once    once
	drawing drawing
	scratch *lookupScratch // of the worker

	listing sync.Mutex // for runs, which only the worker changes, and past
	listed  []*stretch // of creditAll

	words [stretchWords]uint64 // of the shape asked last
	hash  uint64               // of words
	start guess                // what packets took first
	prior *guess               // what followed the stretch that this packet took last

	count    [numCacheEvents]uint64 // of this batch
	totals   stretchTotals
	dirty    bool // totals lack what is held
	reshaped bool // … and which shapes there are
}

const (
	// stretchWords is the most words of a key that a mask may have; a stretch that
	// asks for more is not remembered.
	stretchWords = 20
	// maxShapes is how many masks the stretches have that begin in one table.
	maxShapes = 6
	// defaultStretches is a worker's stretches when it is full: 12 MB.
	defaultStretches = 1 << 16
)

// shape is a mask under which stretches from one table are remembered.
type shape struct {
	mask   []wordMask
	whole  keyBits
	seed   uint64        // of its hashes
	runs   int           // that are not void
	passed uint64        // packets that took one
	table  uint8         // where they begin
	served atomic.Uint64 // packets that took one, as others see it
}

// stretch is what all packets that take it have in common.
type stretch struct {
	shape  *shape
	hash   uint64    // by which it is found again
	users  int       // entries; 0 when it is in runs no more
	tables [4]uint64 // bit set of those looked up
	visits []visited
	writes []keyWrite
	sets   []flow.Action // changes of headers, in order: set_field, load and dec_ttl
	ttls   uint8         // how many of them are dec_ttl
	tuple  bool          // one of them is of an address or a port, which conntrack reads
	end    stretchEnd
	drop   noted       // what it notes last
	met    *flow.Entry // what the last lookup gave; nil for a table-miss
	// How many resubmit(), each the last action of its list, it has come through
	// at its end, and with the others at most.
	depth, deepest int
	void           bool // a table has changed
	meets          bool // it looked a table up that can learn entries, and had none
	next           guess

	packets, bytes uint64 // of this batch
	sum            *owed
}

// keyWrite is bits that are written into a word of the key.
type keyWrite struct {
	index       int
	value, mask uint64
}

// stretchEnd is where a stretch stops.
type stretchEnd struct {
	rest  []flow.Action // of the last list of actions, to be run
	next  int           // table to be looked up, or -1
	table uint8         // whose entry's list that is
	entry *flow.Entry
}

// noted is why a packet goes nowhere from an entry, unless it is sent all the
// same: behind a resubmit() other actions follow.
type noted struct {
	reason DropReason
	table  uint8
	entry  *flow.Entry
}

// remembered is that packets with such words took a stretch. It has no pointers.
type remembered struct {
	slot
	run   uint32
	words [stretchWords]uint64
}

func newStretches(most int, scratch *lookupScratch) *stretches {
	s := &stretches{most: most, scratch: scratch, epoch: 1, byHash: map[uint64]uint32{}, owners: newOwners()}
	s.prior = &s.start
	return s
}

// keepUp voids what a change of the pipeline, or of what it has learned, has
// made untrue.
func (s *stretches) keepUp(prog *program, sw *Switch) {
	if s == nil {
		return
	}
	s.prior = &s.start
	learners, awoken := sw.learners.Load(), sw.awoken.Load()
	if s.prog == prog && s.learners == learners && s.awoken == awoken {
		return
	}
	switch {
	case s.prog == nil || prog == nil || s.learners != learners:
		s.forget()
	default:
		if s.awoken != awoken {
			s.void(func(r *stretch) bool { return r.meets })
		}
		if s.prog != prog {
			s.follow(prog)
		}
	}
	s.prog, s.learners, s.awoken = prog, learners, awoken
}

// follow voids the stretches through tables that are others in a program.
func (s *stretches) follow(prog *program) {
	var changed [4]uint64
	for id, t := range prog.tables {
		if s.prog.tables[id] != t {
			changed[id/64] |= 1 << (id % 64)
		}
	}
	s.void(func(r *stretch) bool {
		touched := uint64(0)
		for i := range changed {
			touched |= r.tables[i] & changed[i]
		}
		return touched != 0
	})
}

// void voids the stretches that something has made untrue.
func (s *stretches) void(untrue func(*stretch) bool) {
	for _, r := range s.runs {
		if !r.void && untrue(r) {
			r.leave()
			s.count[StretchVoid]++
		}
	}
	s.dirty = true
	for id, all := range s.shapes {
		s.shapes[id] = slices.DeleteFunc(all, func(o *shape) bool { return o.runs == 0 })
	}
	s.reshaped = true
}

// leave voids a stretch.
func (r *stretch) leave() {
	if !r.void {
		r.void = true
		r.shape.runs--
	}
}

// forget drops all stretches and shapes.
func (s *stretches) forget() {
	s.live, s.dirty = 0, true
	if s.epoch++; s.epoch == 0 {
		s.epoch = 1
		clear(s.places)
	}
	s.clearRuns()
	clear(s.shapes[:])
	s.reshaped = true
	s.owners.forget()
}

// clearRuns takes all stretches out of the list. What they counted is told by who
// asks next, and of the batch under way at its end.
func (s *stretches) clearRuns() {
	s.listing.Lock()
	for _, r := range s.runs {
		if r.users = 0; r.sum.packets.Load() != 0 {
			s.past = append(s.past, r)
		}
	}
	s.runs = nil
	s.listing.Unlock()
	s.unused = s.unused[:0]
	clear(s.byHash)
}

// guess is the place of the entry that a packet took last time after the one
// before. Most packets go the same way, and then need no hash and no search.
type guess struct{ set, way uint32 }

// guessed is the stretch that was taken here last time, or nil when the packet
// does not take it from a table on.
func (s *stretches) guessed(table uint8, k *flow.Key) *stretch {
	g := s.prior
	if int(g.set) >= len(s.places) {
		return nil
	}
	e := &s.places[g.set][g.way%ways]
	if e.epoch != s.epoch {
		return nil
	}
	r := s.runs[e.run]
	if r.void || r.shape.table != table || !e.of(r.shape.mask, k) {
		return nil
	}
	r.shape.passed++
	e.used = s.round
	return r
}

// of says whether an entry is of packets with such a key.
func (e *remembered) of(mask []wordMask, k *flow.Key) bool {
	words := e.words[:len(mask)]
	for i := range words {
		if m := &mask[i]; k.Word(int(m.index))&m.mask != words[i] {
			return false
		}
	}
	return true
}

// find is the stretch that a packet with a key takes from a table on, or nil.
func (s *stretches) find(table uint8, k *flow.Key) *stretch {
	if r := s.guessed(table, k); r != nil {
		return r
	}
	all := s.shapes[table]
	for i, o := range all {
		r := s.of(o, k)
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

// of is the stretch of a shape that a packet takes, or nil.
func (s *stretches) of(o *shape, k *flow.Key) *stretch {
	s.read(o, k)
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
			if r := s.runs[e.run]; r.shape == o && e.has(s.words[:len(o.mask)]) {
				e.used = s.round
				*s.prior = guess{at, uint32(i)}
				return r
			}
		}
	}
	return nil
}

// read takes the words of a shape and their hash from a key.
func (s *stretches) read(o *shape, k *flow.Key) {
	h := o.seed
	for i, m := range o.mask {
		w := k.Word(int(m.index)) & m.mask
		s.words[i] = w
		h = mix(h, w)
	}
	s.hash = h
}

// has says whether an entry has these words.
func (e *remembered) has(words []uint64) bool {
	different := uint64(0)
	for i, w := range words {
		different |= e.words[i] ^ w
	}
	return different == 0
}

// valid says whether an entry still holds.
func (s *stretches) valid(e *remembered) bool {
	return e.epoch == s.epoch && !s.runs[e.run].void
}

// put remembers a stretch for the words at hand, if there is room for the port.
func (s *stretches) put(r *stretch, port uint32) {
	if room := len(s.tags) * ways; 2*s.live >= room && room < s.most {
		s.grow()
	}
	var all candidates
	sets := twoSets(s.hash, len(s.tags))
	for i := range all {
		if e := &s.places[sets[i/ways]][i%ways]; s.valid(e) {
			all[i] = &e.slot
		}
	}
	own := s.owners.of(port)
	i, why := s.owners.choose(&all, own, s.round, s.owners.share(len(s.tags)*ways))
	switch why {
	case keep:
		s.count[StretchRefused]++
		return
	case ofOwn, ofGreedy:
		s.count[StretchDisplaced]++
	}
	s.count[StretchKept]++
	e := &s.places[sets[i/ways]][i%ways]
	s.vacate(e)
	*e = remembered{slot: slot{epoch: s.epoch, used: s.round, owner: own}, run: s.intern(r), words: s.words}
	s.runs[e.run].users++
	s.tags[sets[i/ways]][i%ways] = tag(s.hash)
	s.owners.list[own]++
	s.live++
	s.dirty = true
}

// vacate takes an entry out of the counts, if it is one, and its stretch with
// the last.
func (s *stretches) vacate(e *remembered) {
	if e.epoch != s.epoch {
		return
	}
	s.owners.list[e.owner]--
	s.live--
	r := s.runs[e.run]
	if r.users--; r.users > 0 {
		return
	}
	r.leave()
	r.sum.take(r.tellDirectly)
	if s.byHash[r.hash] == e.run {
		delete(s.byHash, r.hash)
	}
	s.unused = append(s.unused, e.run)
}

// grow replaces the places by more, empty ones.
func (s *stretches) grow() {
	sets := max(firstSets, min(len(s.tags)*4, s.most/ways))
	s.tags, s.places = make([][ways]uint32, sets), make([][ways]remembered, sets)
	s.live = 0
	s.clearRuns()
	for _, all := range s.shapes {
		for _, o := range all {
			o.runs = 0
		}
	}
	clear(s.owners.list)
}
