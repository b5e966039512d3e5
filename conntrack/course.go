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
