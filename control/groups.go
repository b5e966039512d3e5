package control

import "fmt"

// Numbers that objects get: group ids of Services, packet marks of Egress
// addresses. A number belongs to its owner until the switch has forgotten
// what bore it, so no bundle, whatever fails, meets a number with two owners.

// numbers hands out small numbers, always the lowest free one. The zero value
// is not usable: see newNumbers.
type numbers[O comparable] struct {
	first, last uint32
	next        uint32 // nothing below it is free
	of          map[O]uint32
	owner       map[uint32]O
	unclaimed   map[O]bool // recalled, and not asked for since
}

// newNumbers has the numbers first to last, all free.
func newNumbers[O comparable](first, last uint32) *numbers[O] {
	return &numbers[O]{first: first, last: last, next: first, of: map[O]uint32{}, owner: map[uint32]O{}}
}

// take is the number of an owner, a new one when it has none; false when all
// are taken.
func (n *numbers[O]) take(o O) (uint32, bool) {
	if id, ok := n.of[o]; ok {
		delete(n.unclaimed, o)
		return id, true
	}
	for id := n.next; id <= n.last; id++ {
		if _, taken := n.owner[id]; !taken {
			n.of[o], n.owner[id], n.next = id, o, id+1
			return id, true
		}
	}
	n.next = n.last + 1
	return 0, false
}

// give takes a number back from an owner that may have none.
func (n *numbers[O]) give(o O) {
	id, ok := n.of[o]
	if !ok {
		return
	}
	delete(n.of, o)
	delete(n.owner, id)
	delete(n.unclaimed, o)
	n.next = min(n.next, id)
}

// pass hands the number of one owner, which may have none, to another, which
// has none.
func (n *numbers[O]) pass(from, to O) {
	if id, ok := n.of[from]; ok {
		delete(n.of, from)
		delete(n.unclaimed, from)
		n.of[to], n.owner[id] = id, to
	}
}

// recall gives an owner the number that it had in a process before. The error
// says that it cannot have that.
func (n *numbers[O]) recall(o O, id uint32) error {
	if _, taken := n.owner[id]; taken || id < n.first || id > n.last {
		return fmt.Errorf("%d is taken, or not between %d and %d", id, n.first, n.last)
	}
	if have, ok := n.of[o]; ok {
		return fmt.Errorf("it is %d already, not %d", have, id)
	}
	n.of[o], n.owner[id] = id, o
	if n.unclaimed == nil {
		n.unclaimed = map[O]bool{}
	}
	n.unclaimed[o] = true
	return nil
}

// forgetUnclaimed frees the numbers that were recalled for nobody.
func (n *numbers[O]) forgetUnclaimed() {
	for o := range n.unclaimed {
		n.give(o)
	}
}

// firstServiceGroup is the lowest group id of a Service. The pipeline keeps
// those below for groups of its own: 1 to 4 log policies, 5 and 6 are those of
// multicast policies in Antrea.
const firstServiceGroup = 9

// lastGroup is the highest group id of OpenFlow (OFPG_MAX).
const lastGroup = 0xffffff00
