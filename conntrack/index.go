package conntrack

// index finds connections by key: an array of chain heads, the chains running
// through the entries themselves (entry.next), so that inserting allocates
// nothing. Both keys of a connection are in it. A reference is a slot and a
// direction in one number.
type index struct {
	heads []uint32
	mask  uint64
}

// ref is slot<<1 | direction; 0 is the end of a chain.
type ref = uint32

func makeRef(slot uint32, dir int) ref { return slot<<1 | uint32(dir) }

// newIndex makes an index for n connections with chains of one entry or two.
// It never grows by itself: that would stop the table for as long as it takes
// to move every connection.
func newIndex(n int) index {
	size := 64
	for size < 2*n {
		size *= 2
	}
	return index{heads: make([]uint32, size), mask: uint64(size - 1)}
}

// find is the reference of a key, 0 when it is not there.
func (x *index) find(s *slab, hash uint64, k *key) ref {
	r := x.heads[hash&x.mask]
	for r != 0 {
		e := s.at(r >> 1)
		if e.keys[r&1] == *k {
			return r
		}
		r = e.next[r&1]
	}
	return 0
}

// link puts one key of an entry into its chain.
func (x *index) link(s *slab, hash uint64, r ref) {
	head := &x.heads[hash&x.mask]
	s.at(r >> 1).next[r&1] = *head
	*head = r
}

// unlink takes one key of an entry out of its chain, where it must be.
func (x *index) unlink(s *slab, hash uint64, r ref) {
	at := &x.heads[hash&x.mask]
	for *at != r {
		at = &s.at(*at >> 1).next[*at&1]
	}
	*at = s.at(r >> 1).next[r&1]
}
