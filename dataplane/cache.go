package dataplane

import (
	"sync"

	"github.com/antrail/antrail/conntrack"
)

// The connection cache remembers how walks ended. A packet that shows the same
// signature (signature.go) as one that walked, under the same pipeline and the
// same ports, and for which conntrack has the same answers, is replayed
// (replay.go): windows and timeouts move, headers are rewritten, the entries are
// credited and it leaves, without a lookup.
//
// What a walk can look at is in the signature, or is one of these:
//
//	pipeline, groups, ports   compared by pointer; another one empties the cache
//	learned entries           their number of changes, for walks that could meet one
//	connections               asked again for each packet (conntrack.Pass)
//	meters, NORMAL's table, a copy of the packet, a learn action, a packet-in,
//	a fragment that waits     such a walk is not remembered (record.go)
//
// Each worker has a cache of its own: no lock, no atomic write. It is a table of
// sets, and the signature's secret hash names two sets in which its entry may
// be. It begins small, is replaced by a larger empty one while it fills up, and
// ends at a fixed size. Then a port has a fair share of it: where both sets are
// full a packet displaces an entry of a port beyond its share, else one of its
// own port, else it is not remembered. So whoever begins many connections
// displaces only his own.
//
// A walk is remembered when conntrack called the packet established, or when
// its signature comes a second time: packets that come once displace nothing.
// The walk of a connection's first packet, whose ports come once, may be remembered
// without them (opening.go).
type cache struct {
	tags   [][ways]uint32 // of each set: upper half of the hash, 0 for nothing
	places [][ways]cached
	most   int // entries that it may grow to
	live   int // entries of this epoch

	epoch    uint32 // entries of another one are gone
	round    uint32 // counts batches, for the age of entries
	prog     *program
	ports    *portSet
	learners uint64
	heard    uint64 // the round of live traces' numbers (livewalk.go)

	paths  []*path
	byHash map[uint64]uint32 // index into paths
	fresh  []*path           // paths with packets of this batch
	past   []*path           // paths of before, with packets that entries do not know
	owners owners
	once   once // signatures that came once

	openings openings

	listing sync.Mutex // for paths, which only the worker changes, and past

	sig     signature // of the packet at hand
	pass    conntrack.Passing
	warming warming
	count   [numCacheEvents]uint64 // of this batch
	totals  cacheTotals
	dirty   bool // totals lack what is held
}

const (
	// maxSteps is how many ct() on different connections a remembered walk has.
	maxSteps = 3
	// defaultCache is the entries of a worker's cache when it is full: 80 MB.
	defaultCache = 1 << 18
)

// cached is one remembered walk, without pointers: a large cache costs the
// garbage collector nothing. The first three cache lines are all that IPv4
// needs.
type cached struct {
	slot
	path  uint32    // index into paths, or of asks the group
	near  [6]uint64 // the signature's first words
	ct    [maxSteps]conntrack.Seen
	n     uint8 // words of the signature
	steps uint8
	asks  bool   // of first packets that a group chooses a bucket for (opening.go)
	asked uint8  // offers made, for a shortcut
	heat  uint16 // packets since the last one
	change
	far [sigWords - 6]uint64 // … and the rest
}

// newCache makes a cache that may grow to a number of entries.
func newCache(most int) *cache {
	return &cache{most: most, epoch: 1, byHash: map[uint64]uint32{}, owners: newOwners()}
}

// keepUp empties the cache when the pipeline or the ports have changed.
func (c *cache) keepUp(prog *program, w *worker) {
	ports, learners := w.sw.ports.Load(), w.sw.learners.Load()
	if c.prog == prog && c.ports == ports && c.learners == learners {
		return
	}
	c.count[CacheFlushed] += uint64(c.live)
	c.tell(w)
	c.prog, c.ports, c.learners, c.sig.labels = prog, ports, learners, prog.labels
	c.forget()
}

// forget drops all entries. What the paths counted of this batch must have been told.
func (c *cache) forget() {
	c.live, c.dirty = 0, true
	if c.epoch++; c.epoch == 0 {
		c.epoch = 1
		clear(c.places)
	}
	c.listing.Lock()
	for _, p := range c.paths {
		if p.sum.packets.Load() != 0 {
			c.past = append(c.past, p)
		}
	}
	c.paths = nil // who credits may still read the list
	c.listing.Unlock()
	c.owners.forget()
	clear(c.byHash)
	c.openings.n = 0
}

// find is the entry of the signature at hand, or nil.
func (c *cache) find() *cached {
	if len(c.tags) == 0 {
		return nil
	}
	want := tag(c.sig.hash)
	for _, at := range twoSets(c.sig.hash, len(c.tags)) {
		tags := &c.tags[at]
		for i := range tags {
			if tags[i] == want {
				if e := &c.places[at][i]; e.epoch == c.epoch && e.has(&c.sig) {
					return e
				}
			}
		}
	}
	return nil
}

// has says whether the entry is of a signature.
func (e *cached) has(s *signature) bool {
	if int(e.n) != s.n {
		return false
	}
	different := uint64(0)
	for i := range min(s.n, len(e.near)) {
		different |= e.near[i] ^ s.words[i]
	}
	for i := len(e.near); i < s.n; i++ {
		different |= e.far[i-len(e.near)] ^ s.words[i]
	}
	return different == 0
}

// put writes a signature into the entry.
func (e *cached) put(s *signature) {
	e.n = uint8(s.n)
	copy(e.near[:], s.words[:])
	copy(e.far[:], s.words[len(e.near):])
}

// place is an entry for the signature at hand, which is not there yet or to be
// replaced; nil when there is no room for the port.
func (c *cache) place(port uint32) *cached {
	if e := c.find(); e != nil {
		return e
	}
	if sets := len(c.tags); 2*c.live >= sets*ways && sets*ways < c.most {
		c.grow()
	}
	own := c.owners.of(port)
	at, i, ok := c.choose(own)
	if !ok {
		c.count[CacheRefused]++
		return nil
	}
	e := &c.places[at][i]
	c.leave(e)
	*e = cached{slot: slot{epoch: c.epoch, owner: own}}
	e.put(&c.sig)
	c.tags[at][i] = tag(c.sig.hash)
	c.owners.list[own]++
	c.live++
	c.dirty = true
	return e
}

// grow replaces the cache by a larger, empty one. That costs each connection a
// walk, and comes a few times in a process's life.
func (c *cache) grow() {
	sets := max(firstSets, min(len(c.tags)*4, c.most/ways))
	c.tags, c.places = make([][ways]uint32, sets), make([][ways]cached, sets)
	c.live = 0
	clear(c.owners.list)
}

// leave takes an entry out of the counts, if it is one.
func (c *cache) leave(e *cached) {
	if e.epoch == c.epoch {
		c.owners.list[e.owner]--
		c.live--
	}
}

// choose is the place, in one of its two sets, for the signature at hand. It is
// not ok when all are others' by right.
func (c *cache) choose(own uint16) (at uint32, way int, ok bool) {
	var all candidates
	sets := twoSets(c.sig.hash, len(c.tags))
	for i := range all {
		if e := &c.places[sets[i/ways]][i%ways]; e.epoch == c.epoch {
			all[i] = &e.slot
		}
	}
	i, r := c.owners.choose(&all, own, c.round, c.owners.share(len(c.tags)*ways))
	switch r {
	case ofGreedy:
		c.count[CacheOverShare]++
	case ofOwn:
		c.count[CacheDisplaced]++
	}
	return sets[i/ways], i % ways, r > keep
}
