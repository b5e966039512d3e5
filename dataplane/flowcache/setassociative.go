package flowcache

import (
	"math/bits"
	"slices"

	"github.com/antrail/antrail/dataplane/program"
	"github.com/antrail/antrail/dataplane/telemetry"
)

// table is the hash table of both levels. It has sets of eight places each. A hash names two
// sets, and its entry lies in one of them. A set's tags are the upper halves of the hashes, and
// fill one or two cache lines. A search reads an entry only if its tag matches.
//
//  1. The table begins empty, grows by four while it is half full, and stops at most entries.
//     Growing drops all entries, because every place changes.
//  2. An entry of another epoch does not count. So clearing the table is one addition.
//  3. An entry belongs to the port from which its packet came (owners). If both sets are full, a
//     port with more than its share gives way first, then the port itself. So a port that floods
//     displaces only its own entries.
//  4. E has no pointers: a large table costs the garbage collector nothing.
//
// One goroutine uses a table.
type table[E any, P entryOf[E]] struct {
	tags   [][ways]uint32 // by set; 0 for an empty place
	places [][ways]E
	most   int // the largest number of entries
	live   int // entries of this epoch

	epoch  uint32
	round  uint32 // counts batches, as the clock for the age of entries
	owners owners
	once   once
	dirty  bool // published counts lack the latest change

	// Count is the events of this batch.
	Count [telemetry.NumCacheEvents]uint64
}

// entryOf is an entry that begins with a slot.
type entryOf[E any] interface {
	*E
	at() *slot
}

const (
	ways      = 8
	firstSets = 64
)

// slot is the common part of all entries.
type slot struct {
	epoch uint32 // an entry of another epoch does not count
	used  uint32 // round of the last packet
	owner uint16 // index into owners.list
	// Unwanted is the number of a live set that wants no packet of the entry; 0 for none.
	Unwanted uint16
}

func (s *slot) at() *slot { return s }

// newTable makes a table that grows to at most a number of entries.
func newTable[E any, P entryOf[E]](most int) table[E, P] {
	return table[E, P]{most: most, epoch: 1, owners: owners{byPort: map[uint32]uint16{}}}
}

// EndBatch starts the next round of ages.
func (t *table[E, P]) EndBatch() { t.round++ }

// room returns the number of places.
func (t *table[E, P]) room() int { return len(t.tags) * ways }

// full says whether the table should grow before another entry comes.
func (t *table[E, P]) full() bool { return 2*t.live >= t.room() && t.room() < t.most }

// grow replaces the places by more, all empty.
func (t *table[E, P]) grow() {
	sets := max(firstSets, min(len(t.tags)*4, t.most/ways))
	t.tags, t.places = make([][ways]uint32, sets), make([][ways]E, sets)
	t.live = 0
	clear(t.owners.list)
}

// clear drops all entries.
func (t *table[E, P]) clear() {
	t.live, t.dirty = 0, true
	if t.epoch++; t.epoch == 0 {
		t.epoch = 1
		clear(t.places)
	}
	t.owners.clear()
}

// place is where an entry goes.
type place struct {
	set  uint32
	way  int
	own  uint16 // index of the entry's port in owners.list
	rank rank   // of the present entry
}

// claim returns a place for an entry of a port's packets with a hash. Entries that are not valid
// count as free. The caller must vacate the present entry. If the rank is keep, there is no
// place.
func (t *table[E, P]) claim(hash uint64, port uint32, valid func(*E) bool) place {
	var all [2 * ways]*slot // nil for a free place
	sets := twoSets(hash, len(t.tags))
	for i := range all {
		if e := &t.places[sets[i/ways]][i%ways]; valid(e) {
			all[i] = P(e).at()
		}
	}
	own := t.owners.indexOf(port)
	i, r := t.owners.choose(&all, own, t.round, t.owners.share(t.room()))
	return place{sets[i/ways], i % ways, own, r}
}

// occupy counts an entry with a hash at a vacated place. It returns the slot of the new entry.
func (t *table[E, P]) occupy(p place, hash uint64) slot {
	t.tags[p.set][p.way] = tag(hash)
	t.owners.list[p.own]++
	t.live++
	t.dirty = true
	return slot{epoch: t.epoch, used: t.round, owner: p.own}
}

// vacate removes an entry from the counts. It returns false if there was none.
func (t *table[E, P]) vacate(e *E) bool {
	s := P(e).at()
	if s.epoch != t.epoch {
		return false
	}
	t.owners.list[s.owner]--
	t.live--
	return true
}

// twoSets returns the two of n sets in which an entry with a hash may lie.
func twoSets(hash uint64, n int) [2]uint32 {
	first, _ := bits.Mul64(hash<<32, uint64(n))
	second, _ := bits.Mul64(hash*program.HashSeed, uint64(n))
	return [2]uint32{uint32(first), uint32(second)}
}

// tag is the part of a hash that tells a set's entries apart. It is never 0.
func tag(hash uint64) uint32 { return uint32(hash>>32) | 1 }

// owners are the ports of the entries, and how many entries each has.
type owners struct {
	list   []int
	byPort map[uint32]uint16
}

// indexOf returns a port's index in the list.
func (o *owners) indexOf(port uint32) uint16 {
	i, ok := o.byPort[port]
	if !ok {
		i = uint16(len(o.list))
		o.list = append(o.list, 0)
		o.byPort[port] = i
	}
	return i
}

// clear drops all owners.
func (o *owners) clear() {
	o.list = o.list[:0]
	clear(o.byPort)
}

// share returns how many of room places a port may keep while others need room.
func (o *owners) share(room int) int {
	ports := 0
	for _, entries := range o.list {
		if entries > 0 {
			ports++
		}
	}
	return room / max(1, ports)
}

// choose returns the slot for an entry of a port. A free slot comes first. After that comes the
// longest unused one of a port beyond its share, then of the port itself. The rank is keep if all
// slots belong to other ports within their share.
func (o *owners) choose(all *[2 * ways]*slot, own uint16, round uint32, share int) (best int, r rank) {
	age := uint32(0)
	for i, s := range all {
		now := o.rank(s, own, share)
		if now == free {
			return i, free
		}
		if a := round - s.used; now > r || now == r && now > keep && a > age {
			best, r, age = i, now, a
		}
	}
	return best, r
}

// rank says how readily an entry gives its place to an entry of some port.
type rank uint8

const (
	keep     rank = iota
	ofOwn         // it is of the same port
	ofGreedy      // of another port, which has more than its share
	free          // the place has no entry
)

func (o *owners) rank(s *slot, own uint16, share int) rank {
	switch {
	case s == nil:
		return free
	case s.owner == own:
		return ofOwn
	case o.list[s.owner] > share:
		return ofGreedy
	}
	return keep
}

// once has the tags of hashes that came once, the last few of each slot. Only a hash that comes
// twice gets an entry. So packets that come once displace nothing.
type once [onceSlots][onceWays]uint32

const (
	onceSlots = 1024
	onceWays  = 8
)

// seen records a hash, and returns whether it came before.
func (o *once) seen(hash uint64) bool {
	s, t := &o[hash%onceSlots], tag(hash)
	if slices.Contains(s[:], t) {
		return true
	}
	copy(s[1:], s[:])
	s[0] = t
	return false
}
