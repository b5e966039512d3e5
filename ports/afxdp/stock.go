package afxdp

// stock is how many frames of a port the kernel has to receive into. The kernel uses them in
// order, so a port uses all of its frames in turn. With many frames, their memory leaves the
// processors' caches before it is used again. A veth forwards a sixth more frames of 1,400 bytes
// with 512 than with 2,048. So a port has few frames, and gets more when a burst has used most of
// them.
//
// More frames do not help if frames constantly come faster than the worker takes them; they would
// only be late. In that case the port has few frames again, until it has caught up.
type stock struct {
	all         bool // as many as the fill ring takes
	least, most int
	level       int  // how many it should have
	out         int  // how many it has, including those in the RX ring
	took        int  // taken from the RX ring since the last call of received
	calm        int  // frames received since half of the level was last in use
	pressed     int  // frames received since less than half was in use
	flooded     bool // more did not help
}

const (
	// leastStock lasts half a millisecond at a million frames a second, while the worker is
	// elsewhere.
	leastStock = 512
	// calmRounds and pressedRounds are how many full rings of frames a port receives before its
	// stock shrinks.
	calmRounds    = 16
	pressedRounds = 8
)

// newStock is the stock of a port with rings of slots slots. A port without copies has as many
// frames as its fill ring takes. Its driver moves them on to the card's ring, which may have more
// slots, and takes more until both are full.
func newStock(slots int, copied bool) stock {
	return stock{all: !copied, least: min(leastStock, slots), most: slots, level: slots}
}

// wants is how many more frames the kernel should have, up to n.
func (s *stock) wants(n int) int {
	if s.all {
		return n
	}
	return min(n, s.level-s.out)
}

// countReceived records that one frame was taken from the RX ring.
func (s *stock) countReceived() {
	s.out--
	s.took++
}

// received adjusts the level after frames were taken. waiting is how many are still in the RX
// ring.
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
