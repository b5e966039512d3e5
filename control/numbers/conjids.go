package numbers

import "time"

// A conjunction id numbers a rule in the tables. Connections carry it in their ct_label and
// packets in a register. So an id is still in use for a moment after its rule has gone, and a
// freed id rests before another rule gets it.

const (
	// FirstConjunctionID is the lowest id of a rule: 0 means none, and 1 belongs to the
	// interception of DNS answers.
	FirstConjunctionID = 2
	// conjunctionRest is how long a freed id is not assigned.
	conjunctionRest = 5 * time.Second
)

// ConjunctionIDs assigns conjunction ids. It takes the id that was freed first, if that has
// rested, and otherwise an id that was never used.
type ConjunctionIDs struct {
	clock    func() time.Time
	next     uint32
	released []releasedID // oldest first
}

type releasedID struct {
	id uint32
	at time.Time
}

// NewConjunctionIDs assigns ids from FirstConjunctionID on; clock times their rest.
func NewConjunctionIDs(clock func() time.Time) *ConjunctionIDs {
	return &ConjunctionIDs{clock: clock, next: FirstConjunctionID}
}

// Assign returns an id that no rule has.
func (c *ConjunctionIDs) Assign() uint32 {
	if len(c.released) > 0 && c.clock().Sub(c.released[0].at) >= conjunctionRest {
		id := c.released[0].id
		c.released = c.released[1:]
		return id
	}
	c.next++
	return c.next - 1
}

// Free takes back an id. It rests from now on.
func (c *ConjunctionIDs) Free(id uint32) {
	c.released = append(c.released, releasedID{id, c.clock()})
}

// Restore takes over the ids of an earlier process. Each lower id that is not taken rests as
// if it were freed now.
func (c *ConjunctionIDs) Restore(taken map[uint32]bool) {
	for id := range taken {
		c.next = max(c.next, id+1)
	}
	for id := uint32(FirstConjunctionID); id < c.next; id++ {
		if !taken[id] {
			c.Free(id)
		}
	}
}
