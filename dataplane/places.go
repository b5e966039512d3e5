package dataplane

import (
	"math/bits"
	"slices"
)

// What the tables of a worker's memory have in common: where an entry may lie,
// whom it belongs to, and who gives way to whom when there is no room.

const (
	ways      = 8
	firstSets = 64
)

// slot is the part of an entry that says whose it is.
type slot struct {
	epoch uint32 // entries of another epoch are gone
	used  uint32 // round of the last packet
	owner uint16 // index into owners.list
	// unwanted is the live traces that want no such packet, by their number; 0 for none.
	unwanted uint16
}

// twoSets are the two of n sets in which an entry with a hash may be.
func twoSets(hash uint64, n int) [2]uint32 {
	first, _ := bits.Mul64(hash<<32, uint64(n))
	second, _ := bits.Mul64(hash*hashSeed, uint64(n))
	return [2]uint32{uint32(first), uint32(second)}
}

// tag tells hashes of a set apart; it is never 0.
func tag(hash uint64) uint32 { return uint32(hash>>32) | 1 }

// owners are the ports that packets came from, and how many entries each has.
type owners struct {
	list   []int
	byPort map[uint32]uint16
}

func newOwners() owners { return owners{byPort: map[uint32]uint16{}} }

// of is a port's place in the list.
func (o *owners) of(port uint32) uint16 {
	i, ok := o.byPort[port]
	if !ok {
		i = uint16(len(o.list))
		o.list = append(o.list, 0)
		o.byPort[port] = i
	}
	return i
}

// forget drops all owners.
func (o *owners) forget() {
	o.list = o.list[:0]
	clear(o.byPort)
}

// share is how many of so many entries a port may have while others need room.
func (o *owners) share(room int) int {
	ports := 0
	for _, entries := range o.list {
		if entries > 0 {
			ports++
		}
	}
	return room / max(1, ports)
}

// candidates are the slots where an entry may go, nil where one is free.
type candidates [2 * ways]*slot

// choose is which of the slots goes to an entry of a port: a free one, else the
// longest unused of the ports beyond their share, else that of the port itself.
// The rank is keep when all are others' by right.
func (o *owners) choose(all *candidates, own uint16, round uint32, share int) (best int, r rank) {
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

// rank says how readily an entry gives its place to one of a port.
type rank uint8

const (
	keep     rank = iota
	ofOwn         // it is of the same port
	ofGreedy      // of another port, which has more than its share
	free          // none is there
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

// once remembers the tags of hashes that came once, the last few of each slot.
type once [onceSlots][onceWays]uint32

const (
	onceSlots = 1024
	onceWays  = 8
)

// seen notes a hash, and says whether it had come before.
func (o *once) seen(hash uint64) bool {
	s, t := &o[hash%onceSlots], tag(hash)
	if slices.Contains(s[:], t) {
		return true
	}
	copy(s[1:], s[:])
	s[0] = t
	return false
}
