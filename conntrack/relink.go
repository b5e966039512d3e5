package conntrack

// Making the index anew for connections that were restored. A place in it is a
// place in memory at random, and so is the cell that a chain leads to. To wait
// for neither, the index is made part by part, each in a workbench small enough
// for a processor's cache. Most keys come first into their chains: their cells say
// so from the start (place). What follows the others is noted by slice of cells,
// and written slice by slice.

// partBits is the size of a part: 2^16 heads, 256 kB.
const partBits = 16

// parts is how many parts the index has.
func (x *index) parts() int { return (len(x.heads)-1)>>partBits + 1 }

// placed is a key to be put into a chain of its part.
type placed struct {
	chain uint16 // in the part
	tag   uint16 // of the key's hash, what the chain's number does not show
	ref   ref
}

// workbench is one part of the index while it is made. Its chains run through
// links by position, counted from 1; 0 ends them.
type workbench struct {
	heads [1 << partBits]uint32
	links []link
}

// link is a key in its chain.
type link struct {
	placed
	next uint32
}

// followed is a key that is not the last of its chain.
type followed struct{ ref, next ref }

// place notes that a key is to be put into its chain, at whose end its cell says
// it is.
func (k *taker) place(r ref, of *key) {
	var w keyWords
	of.store(&w)
	hash := k.t.chains.hash(&w)
	chain := k.t.index.bucket(hash)
	k.t.arena.follow(r, atEnd|chain)
	part := &k.parts[chain>>partBits]
	if cap(*part) == 0 { // the hash spreads them evenly
		*part = make([]placed, 0, 2*int(k.t.arena.top.Load())/len(k.parts)/len(k.takers)*5/4)
	}
	*part = append(*part, placed{uint16(chain), uint16(hash), r})
}

// follow writes what follows a reference in its chain; 0 when it is in none.
func (a *arena) follow(r, next ref) { *unshared(&a.at(r >> 1).chain[r&1]) = next }

// runLink makes the chains of one part of the index after the other, in the
// order of the cells that each taker has met.
func (k *taker) runLink() {
	w := new(workbench)
	for part := int(k.next.Add(1)) - 1; part < k.t.index.parts(); part = int(k.next.Add(1)) - 1 {
		clear(w.heads[:])
		w.links = w.links[:0]
		for _, by := range k.takers {
			for _, p := range by.parts[part] {
				k.link(w, p)
			}
		}
		k.t.index.copyPart(part, w)
	}
}

// link puts a key at the head of its chain, unless the key is another
// connection's too: then it is a stray. Only a forged arena has such, or chains
// that are too long.
func (k *taker) link(w *workbench, p placed) {
	head, length := w.heads[p.chain], 1
	for at := head; at != 0; at = w.links[at-1].next {
		other := &w.links[at-1]
		if other.tag == p.tag && k.t.arena.clash(other.ref, p.ref) || length == maxChain {
			k.stray = append(k.stray, p.ref)
			k.t.arena.follow(p.ref, 0)
			return
		}
		length++
	}
	if head != 0 {
		of := &k.followed[p.ref>>1/restoreSlice]
		*of = append(*of, followed{p.ref, w.links[head-1].ref})
	}
	w.links = append(w.links, link{p, head})
	w.heads[p.chain] = uint32(len(w.links))
	k.chain = max(k.chain, length)
}

// copyPart makes the workbench's chains those of a part of the index.
func (x *index) copyPart(part int, w *workbench) {
	heads := x.heads[part<<partBits:]
	for i := range heads[:min(len(heads), len(w.heads))] {
		if at := w.heads[i]; at != 0 {
			*unshared(&heads[i]) = w.links[at-1].ref
		}
	}
}

// clash says whether two references are to one key of two connections.
func (a *arena) clash(r, s ref) bool {
	return r>>1 != s>>1 && a.at(r>>1).keyWords(int(r&1)) == a.at(s>>1).keyWords(int(s&1))
}

// runFollow writes into the cells what follows them, where that is not the end.
func (k *taker) runFollow() {
	for first, end := k.slice(); first < end; first, end = k.slice() {
		for _, by := range k.takers {
			for _, f := range by.followed[first/restoreSlice] {
				k.t.arena.follow(f.ref, f.next)
			}
		}
	}
}

// dropStrays ends the connections of which a key is no key of theirs.
func (k *taker) dropStrays() {
	for _, r := range k.stray {
		k.dropStray(r >> 1)
	}
}

func (k *taker) dropStray(slot uint32) {
	t, c := k.t, k.t.arena.at(slot)
	head := c.head.Load()
	if !live(head) { // both its keys were strays
		return
	}
	for dir := range c.keys {
		if c.chain[dir].Load() != 0 {
			w := c.keyWords(dir)
			t.index.unlink(t.arena, t.index.bucket(t.chains.hash(&w)), makeRef(slot, dir))
		}
	}
	t.shares.of(t, c.port()).move(t.arena, slot, c.list(), unlisted, 0)
	w := c.keyWords(original)
	c.unlock(uint32(head) + 1)
	t.arena.release(slot)
	t.forget(w.zone(), c.port())
	t.counts.restored.Entries--
	t.counts.restored.Torn++
}
