package flowcache

import (
	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane/telemetry"
)

// Exact is the exact-match level: it stores the results of whole walks. A packet is replayed
// without a lookup if an earlier walk had its signature and conntrack gives the same answers.
//
// A walk is stored if conntrack called the packet established, or if its signature comes a second
// time. Entries under wildcard signatures (wildcard.go) are for first packets of connections.
type Exact struct {
	table[Entry, *Entry]
	Sig Signature // of the current packet

	wild  Signature // a wildcard signature of Sig
	masks wildMasks
}

// MaxSteps is how many ct() on different connections a stored walk may have.
const MaxSteps = 3

// Entry is one stored walk, without pointers. It is five whole cache lines, because a table of
// entries begins at a page. An IPv4 packet reads the first line for the search, the second for
// conntrack and the third for the change.
type Entry struct {
	slot
	Path  uint32 // index of the walk's path; for AsksGroup the group's id
	n     uint8  // words of the signature
	Steps uint8  // of CT in use
	// AsksGroup says that a group chooses a bucket for these packets. The walk is stored under
	// the wildcard signature of that bucket.
	AsksGroup  bool
	Offers     uint8             // how often the entry was offered to the kernel
	SinceOffer uint16            // packets since the last offer
	near       [nearWords]uint64 // the signature's first words

	CT [MaxSteps]conntrack.Seen
	Change
	far [sigWords - nearWords]uint64 // the signature's other words
	_   [8]byte
}

// nearWords is the number of signature words of IPv4 without a tunnel.
const nearWords = 5

// MakeExact makes a level that grows to at most a number of entries.
func MakeExact(most int) Exact { return Exact{table: newTable[Entry](most)} }

// Touch records that a packet used the entry.
func (c *Exact) Touch(e *Entry) { e.used = c.round }

// Clear drops all entries.
func (c *Exact) Clear() {
	c.clear()
	c.masks.n = 0
}

// Find returns the entry of the current packet, or nil.
func (c *Exact) Find() *Entry { return c.find(&c.Sig) }

func (c *Exact) find(s *Signature) *Entry {
	if len(c.tags) == 0 {
		return nil
	}
	want := tag(s.hash)
	for _, at := range twoSets(s.hash, len(c.tags)) {
		tags := &c.tags[at]
		for i := range tags {
			if tags[i] == want {
				if e := &c.places[at][i]; e.epoch == c.epoch && e.has(s) {
					return e
				}
			}
		}
	}
	return nil
}

// has says whether the entry has a signature.
func (e *Entry) has(s *Signature) bool {
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

// WildPorts returns the wildcard signature of the current packet that keeps some port bits. It is
// valid until the next call of WildPorts, WildBucket or FindWild.
func (c *Exact) WildPorts(keep PortMask) *Signature {
	c.wild.WildPorts(&c.Sig, keep)
	return &c.wild
}

// WildBucket is WildPorts for a bucket that a group chooses for the current packet.
func (c *Exact) WildBucket(bucket int) *Signature {
	c.wild.WildBucket(&c.Sig, bucket)
	return &c.wild
}

// WildMasks returns the number of masks of wildcard signatures with entries.
func (c *Exact) WildMasks() int { return c.masks.n }

// FindWild returns the entry of the current packet under one of WildMasks, or nil.
func (c *Exact) FindWild(i int) *Entry { return c.find(c.WildPorts(c.masks.list[i])) }

// FindBucket returns the entry of the current packet for a bucket, or nil.
func (c *Exact) FindBucket(bucket int) *Entry { return c.find(c.WildBucket(bucket)) }

// MatchedWild records that FindWild of a mask matched. That mask moves one place forward.
func (c *Exact) MatchedWild(i int) { c.masks.matched(i) }

// AddWildMask records that a mask has an entry.
func (c *Exact) AddWildMask(mask PortMask) { c.masks.add(mask) }

// CameBefore records a signature, and returns whether it came before.
func (c *Exact) CameBefore(s *Signature) bool { return c.once.seen(s.hash) }

// Place returns an empty entry for a signature of the current packet, which entered by a port. It
// reuses the signature's present entry if there is one. It returns nil if the port has no room.
func (c *Exact) Place(s *Signature, port uint32) *Entry {
	e := c.find(s)
	if e == nil {
		if e = c.claimEntry(s, port); e == nil {
			return nil
		}
	}
	*e = Entry{slot: e.slot, SinceOffer: e.SinceOffer, Offers: e.Offers}
	e.used = c.round
	e.n = uint8(s.n)
	copy(e.near[:], s.words[:])
	copy(e.far[:], s.words[len(e.near):])
	return e
}

// claimEntry makes room for an entry of a signature.
func (c *Exact) claimEntry(s *Signature, port uint32) *Entry {
	if c.full() {
		c.grow()
	}
	p := c.claim(s.hash, port, func(e *Entry) bool { return e.epoch == c.epoch })
	switch p.rank {
	case keep:
		c.Count[telemetry.CacheRefused]++
		return nil
	case ofGreedy:
		c.Count[telemetry.CacheOverShare]++
	case ofOwn:
		c.Count[telemetry.CacheDisplaced]++
	}
	e := &c.places[p.set][p.way]
	c.vacate(e)
	*e = Entry{slot: c.occupy(p, s.hash)}
	return e
}

// Firsts returns how many packets of the batch were the first of their connection, or of
// their kind.
func (c *Exact) Firsts() uint64 {
	return c.Count[telemetry.CacheMiss] + c.Count[telemetry.CacheFirst]
}

// Live returns the number of entries.
func (c *Exact) Live() int { return c.live }

// Room returns the number of places for entries.
func (c *Exact) Room() int { return c.room() }

// Changed says whether entries came or went since the last call.
func (c *Exact) Changed() bool {
	changed := c.dirty
	c.dirty = false
	return changed
}

// Most returns the maximal number of entries.
func (c *Exact) Most() int { return c.most }
