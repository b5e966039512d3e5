package afxdp

// stock is how many frames the kernel has of a port to receive into. It takes them in
// order, so a port uses all that it has in turn. The memory of many falls out of the
// processors' caches before it is used again. A veth forwards a sixth more frames of
// 1,400 bytes with 512 than with 2,048. So a port has few, and more when a burst has used
// most of them up.
//
// More help nobody when frames never cease to come faster than the worker takes
// them: they would be late besides. After that the port has few again, until it has
// caught up.
type stock struct {
	all         bool // as many as it takes
	least, most int
	level       int  // how many it should have
	out         int  // how many it has, with those that wait in the RX ring
	took        int  // how many have been taken from there since received
	calm        int  // frames received since half of the level was in use
	pressed     int  // frames received since it was not
	flooded     bool // more did not help
}

const (
	// leastStock is enough for half a millisecond in which the worker is elsewhere, at
	// a million frames a second.
	leastStock = 512
	// calmRounds and pressedRounds are how many times the frames of a full ring a port
	// receives before its stock shrinks.
	calmRounds    = 16
	pressedRounds = 8
)

// newStock is that of a port with so many slots. One without copies has all that its fill
// ring takes. The driver moves them on to the card's ring, which may have more slots, and
// wants more until both are full.
func newStock(slots int, copied bool) stock {
	return stock{all: !copied, least: min(leastStock, slots), most: slots, level: slots}
}

// wants is how many more frames the kernel is to have, up to n.
func (s *stock) wants(n int) int {
	if s.all {
		return n
	}
	return min(n, s.level-s.out)
}

// countReceived learns that one has been taken from the RX ring.
func (s *stock) countReceived() {
	s.out--
	s.took++
}

// received learns how many wait there after some were taken, or none.
func (s *stock) received(waiting int) {
	n := s.took
	s.took = 0
	if s.all {
		return
	}
	if n+waiting <= s.level/2 {
		s.pressed, s.flooded = 0, false
		if s.calm += n; s.calm > calmRounds*s.most && s.level > s.least {
			s.level, s.calm = s.level/2, 0
		}
		return
	}
	s.calm = 0
	if s.flooded {
		return
	}
	s.pressed += n
	switch {
	case s.pressed > pressedRounds*s.most:
		s.level, s.flooded = s.least, true
	case s.level < s.most && s.out-waiting < s.level/4:
		s.level *= 2
	}
}
