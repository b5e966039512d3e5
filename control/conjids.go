package control

import "time"

// Conjunction ids number the rules in the tables. They outlive a rule for some
// seconds: connections carry them in their ct_label, and packets that are
// under way in registers, so an id that is free waits before somebody else
// gets it.

const (
	// firstConjunctionID is the first id given away: 0 is none, 1 belongs to
	// the interception of DNS answers.
	firstConjunctionID = 2
	// conjunctionRest is how long a released id is not used.
	conjunctionRest = 5 * time.Second
)

// conjunctionIDs gives out conjunction ids: the one released longest ago, if
// it has rested, else one never used.
type conjunctionIDs struct {
	clock    func() time.Time
	next     uint32
	released []releasedID // oldest first
}

type releasedID struct {
	id uint32
	at time.Time
}

func newConjunctionIDs(clock func() time.Time) *conjunctionIDs {
	return &conjunctionIDs{clock: clock, next: firstConjunctionID}
}

// allocate returns an id that nobody has.
func (c *conjunctionIDs) allocate() uint32 {
	if len(c.released) > 0 && c.clock().Sub(c.released[0].at) >= conjunctionRest {
		id := c.released[0].id
		c.released = c.released[1:]
		return id
	}
	c.next++
	return c.next - 1
}

// release takes an id back.
func (c *conjunctionIDs) release(id uint32) {
	c.released = append(c.released, releasedID{id, c.clock()})
}

// maxVLAN is the highest VLAN id by which the application-aware engine tells
// rules apart; 0 and 4095 are reserved by IEEE 802.1Q.
const maxVLAN = 4094
