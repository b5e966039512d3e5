package store

import "github.com/antrail/antrail/conntrack/tuple"

// Building the index for restored connections. A key's place in the index is random, and so is
// the cell to which a chain leads. These rules avoid waiting for memory:
//
//  1. The index is built part by part, each in a workbench that fits a processor's cache.
//  2. Most keys are the last of their chains. place writes that into their cells.
//  3. The next references of the other keys are collected by slice of cells, and written slice by
//     slice.

// partBits is the size of a part: 2^16 heads, 256 kB.
const partBits = 16

// parts is how many parts the index has.
func (x *Index) parts() int { return (len(x.heads)-1)>>partBits + 1 }

// placed is a key and its chain in a part.
type placed struct {
	chain uint16 // in the part
	tag   uint16 // bits of the key's hash that the chain's number does not have
	ref   ref
}

// workbench is one part of the index while it is built. Its chains run through links by position,
// counted from 1. 0 ends a chain.
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

// place collects a key for its chain, and marks its cell as the end of that chain.
func (k *worker) place(r ref, of *tuple.Key) {
	var w tuple.Words
	of.Store(&w)
	hash := k.chains.Hash(&w)
	chain := k.x.Bucket(hash)
	k.a.follow(r, atEnd|chain)
	part := &k.parts[chain>>partBits]
	if cap(*part) == 0 { // the hash spreads them evenly
		*part = make([]placed, 0, 2*int(k.a.End())/len(k.parts)/len(k.workers)*5/4)
	}
	*part = append(*part, placed{uint16(chain), uint16(hash), r})
}

// follow writes the next reference of r in its chain. 0 means that r is in no chain.
func (a *Arena) follow(r, next ref) { *unshared(&a.At(r >> 1).chain[r&1]) = next }

// runLink builds the parts of the index one after the other, in the order of the cells that each
// worker has verified.
func (k *worker) runLink() {
	w := new(workbench)
	for part := int(k.next.Add(1)) - 1; part < k.x.parts(); part = int(k.next.Add(1)) - 1 {
		w.links = w.links[:0]
		for _, by := range k.workers {
			for _, p := range by.parts[part] {
				k.link(w, p)
			}
		}
		k.x.copyPart(part, w)
	}
}

// link inserts a key at the head of its chain. The key is a stray if another connection has it
// too, or if the chain is too long. Only a forged arena has strays.
func (k *worker) link(w *workbench, p placed) {
	head, length := w.heads[p.chain], 1
	for at := head; at != 0; at = w.links[at-1].next {
		other := &w.links[at-1]
		if other.tag == p.tag && k.a.clash(other.ref, p.ref) || length == MaxChain {
			k.stray = append(k.stray, p.ref)
			k.a.follow(p.ref, 0)
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

// copyPart moves the workbench's chains to a part of the index, and leaves its heads 0. The cost
// depends only on the keys, so an empty part costs nothing.
func (x *Index) copyPart(part int, w *workbench) {
	heads := x.heads[part<<partBits:]
	for i := range w.links {
		chain := w.links[i].chain
		if at := &w.heads[chain]; *at != 0 {
			*unshared(&heads[chain]) = w.links[*at-1].ref
			*at = 0
		}
	}
}

// clash says whether two references are to one key of two connections.
func (a *Arena) clash(r, s ref) bool {
	return r>>1 != s>>1 && a.At(r>>1).KeyWords(int(r&1)) == a.At(s>>1).KeyWords(int(s&1))
}

// runFollow writes the next references into cells that are not the end of their chains.
func (k *worker) runFollow() {
	for first, end := k.slice(); first < end; first, end = k.slice() {
		for _, by := range k.workers {
			for _, f := range by.followed[first/restoreSlice] {
				k.a.follow(f.ref, f.next)
			}
		}
	}
}

// UnlinkStray removes the keys of a stray from their chains.
func (x *Index) UnlinkStray(a *Arena, chains *tuple.ChainSecret, slot uint32) {
	c := a.At(slot)
	for dir := range c.keys {
		if c.chain[dir].Load() != 0 {
			w := c.KeyWords(dir)
			x.Unlink(a, x.Bucket(chains.Hash(&w)), slot, dir)
		}
	}
}
