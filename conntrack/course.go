package conntrack

// course is how far the segments of one direction have come, as one word of a cell:
// what they took of sequence numbers, peer.next of who sends them, and in the upper half
// what they granted, peer.limit of who receives them. Without the lock nobody else moves
// them, so segments of both directions move their connection on without waiting for each
// other.
type course uint64

// courseOf is the course of the segments that src sends to dst.
func courseOf(src, dst *peer) course { return course(src.next) | course(dst.limit)<<32 }

// tell is the inverse of courseOf.
func (k course) tell(src, dst *peer) { src.next, dst.limit = uint32(k), uint32(k>>32) }

// both is the two sides of a connection in a cell as a segment meets them.
type both struct {
	src, dst peer
	dir      int
	head     uint64 // of the cell, when they were read
	course   course // of the segments of src
}

// load reads them. The caller sees to it that they are of one moment.
func (b *both) load(c *cell, dir int) {
	b.dir = dir
	b.src.unpack(c.mut[6+dir].Load())
	b.dst.unpack(c.mut[7-dir].Load())
	b.course = course(c.mut[4+dir].Load())
	b.course.tell(&b.src, &b.dst)
	course(c.mut[5-dir].Load()).tell(&b.dst, &b.src)
}

// sliding is what became of a segment that was to move its connection without a lock.
type sliding uint8

const (
	slid    sliding = iota
	stopped         // it lies outside the window, or moves a state
	widened         // it offers the largest window so far
	beaten          // others have moved the connection meanwhile
)

// slide moves a connection on by a segment: its direction's course, and the expiry that
// was read with it. Who has taken the lock since may have read the course before it
// moved, so the segment meets what they leave behind.
func (t *Table) slide(c *cell, b *both, g *segment, expires, now int64) sliding {
	window := b.src.window
	if !t.follow(&b.src, &b.dst, g) {
		return stopped
	}
	if b.src.window != window {
		return widened
	}
	next := now + int64(t.timeouts.tcp(b.src.state, b.dst.state))
	moved := courseOf(&b.src, &b.dst)
	if moved != b.course && (!c.mut[4+b.dir].CompareAndSwap(uint64(b.course), uint64(moved)) || c.head.Load() != b.head) ||
		expires != next && !c.postpone(expires, next) {
		return beaten
	}
	return slid
}

// follow moves both sides of a connection by a segment. It reports false where that lies
// outside the window, or moves a side's state.
func (t *Table) follow(src, dst *peer, g *segment) bool {
	if src.state == tcpClosed || t.seqCheck.Load() && !src.inWindow(dst, g) {
		return false
	}
	before, other := src.state, dst.state
	src.advance(dst, g)
	src.acknowledge(dst, g)
	return src.state == before && dst.state == other
}
