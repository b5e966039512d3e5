package numbers

import "fmt"

// Allocator assigns small numbers to owners: group ids to ports of Services, packet marks
// to Egress addresses, VLAN ids to rules. It assigns the lowest free number. The caller
// frees a number only after the switch has removed what used it, so no bundle sees a number
// with two owners. NewAllocator makes one.
type Allocator[O comparable] struct {
	first, last uint32
	next        uint32       // nothing below it is free
	Assigned    map[O]uint32 // for reading
	owner       map[uint32]O
	unclaimed   map[O]bool // restored, and not assigned since
}

// NewAllocator makes an Allocator of the numbers first to last, all free.
func NewAllocator[O comparable](first, last uint32) *Allocator[O] {
	return &Allocator[O]{first: first, last: last, next: first, Assigned: map[O]uint32{}, owner: map[uint32]O{}}
}

// Assign returns the number of an owner. An owner without a number gets a new one. It
// returns false when no number is free.
func (n *Allocator[O]) Assign(o O) (uint32, bool) {
	if id, ok := n.Assigned[o]; ok {
		delete(n.unclaimed, o)
		return id, true
	}
	for id := n.next; id <= n.last; id++ {
		if _, taken := n.owner[id]; !taken {
			n.Assigned[o], n.owner[id], n.next = id, o, id+1
			return id, true
		}
	}
	n.next = n.last + 1
	return 0, false
}

// Free takes back the number of an owner, if it has one.
func (n *Allocator[O]) Free(o O) {
	id, ok := n.Assigned[o]
	if !ok {
		return
	}
	delete(n.Assigned, o)
	delete(n.owner, id)
	delete(n.unclaimed, o)
	n.next = min(n.next, id)
}

// Transfer gives the number of one owner, if it has one, to another owner without a number.
func (n *Allocator[O]) Transfer(from, to O) {
	if id, ok := n.Assigned[from]; ok {
		delete(n.Assigned, from)
		delete(n.unclaimed, from)
		n.Assigned[to], n.owner[id] = id, to
	}
}

// Restore gives an owner the number that it had in an earlier process. It returns an error
// if the number is out of range or has an owner, or if the owner has another number.
func (n *Allocator[O]) Restore(o O, id uint32) error {
	if _, taken := n.owner[id]; taken || id < n.first || id > n.last {
		return fmt.Errorf("%d is taken, or not between %d and %d", id, n.first, n.last)
	}
	if have, ok := n.Assigned[o]; ok {
		return fmt.Errorf("its owner has the number %d, not %d", have, id)
	}
	n.Assigned[o], n.owner[id] = id, o
	if n.unclaimed == nil {
		n.unclaimed = map[O]bool{}
	}
	n.unclaimed[o] = true
	return nil
}

// FreeUnclaimed frees the restored numbers that Assign was not asked for.
func (n *Allocator[O]) FreeUnclaimed() {
	for o := range n.unclaimed {
		n.Free(o)
	}
}
