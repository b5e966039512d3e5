package conntrack

// Making the index anew for connections that were restored. A place in it is a
// place in memory at random, and so is the cell that a chain leads to. To wait
// for neither, the index is made part by part, each small enough for a
// processor's cache, and the chains stand aside until they are complete.

// partBits is the size of a part: 2^16 heads, 256 kB.
const partBits = 16

// parts is how many parts the index has.
func (x *index) parts() int { return (len(x.heads)-1)>>partBits + 1 }

// placed is a key to be put into a chain.
type placed struct{ chain, ref uint32 }

// link is a reference's place in its chain while that is made.
type link struct {
	next ref    // 0 when it is in no chain
	tag  uint32 // of the key's hash, what the chain's number does not show
}

// place notes that a key is to be put into its chain.
func (k *taker) place(r ref, of *key) {
	var w keyWords
	of.store(&w)
	hash := k.t.chains.hash(&w)
	chain := k.t.index.bucket(hash)
	k.links[r].tag = uint32(hash)
	part := &k.parts[chain>>partBits]
	if cap(*part) == 0 { // the hash spreads them evenly
		*part = make([]placed, 0, len(k.links)/len(k.parts)/len(k.takers)*5/4)
	}
	*part = append(*part, placed{chain, r})
}

// runLink makes the chains of one part of the index after the other, in the
// order of the cells that each taker has met.
func (k *taker) runLink() {
	for part := int(k.next.Add(1)) - 1; part < k.t.index.parts(); part = int(k.next.Add(1)) - 1 {
		for _, by := range k.takers {
			for _, p := range by.parts[part] {
				k.link(p)
			}
		}
	}
}

// link puts a key at the head of its chain, unless the key is another
// connection's too: then it is a stray. Only a forged arena has such, or chains
// that are too long.
func (k *taker) link(p placed) {
	at := unshared(&k.t.index.heads[p.chain])
	head := *at
	if head == 0 {
		head = atEnd | p.chain
	}
	length := 1
	for r := head; r&atEnd == 0; r = k.links[r].next {
		if k.links[r].tag == k.links[p.ref].tag && k.t.arena.clash(r, p.ref) || length == maxChain {
			k.stray = append(k.stray, p.ref)
			return
		}
		length++
	}
	k.links[p.ref].next = head
	*at = p.ref
	k.chain = max(k.chain, length)
}

// clash says whether two references are to one key of two connections.
func (a *arena) clash(r, s ref) bool {
	return r>>1 != s>>1 && a.at(r>>1).keyWords(int(r&1)) == a.at(s>>1).keyWords(int(s&1))
}

// runPublish copies the chains into the cells.
func (k *taker) runPublish() {
	for first, end := k.slice(); first < end; first, end = k.slice() {
		for slot := first; slot < end; slot++ {
			for dir := range 2 {
				if next := k.links[makeRef(slot, dir)].next; next != 0 {
					*unshared(&k.t.arena.at(slot).chain[dir]) = next
				}
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
		if r := makeRef(slot, dir); k.links[r].next != 0 {
			w := c.keyWords(dir)
			t.index.unlink(t.arena, t.index.bucket(t.chains.hash(&w)), r)
		}
	}
	if c.flags()&expendable != 0 {
		t.shares.of(t, c.port()).leave(t.arena, slot)
	}
	w := c.keyWords(original)
	c.unlock(uint32(head) + 1)
	t.arena.release(slot)
	t.forget(w.zone(), c.port())
	t.counts.restored.Entries--
	t.counts.restored.Torn++
}
