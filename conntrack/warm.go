package conntrack

import "github.com/antrail/antrail/packet"

// Warming: to bring what packets will need nearer to the processor, for a batch
// of them together, so that it waits for many places of memory at once and not
// for one after the other. Nothing is decided here; what the functions return as
// a number means nothing, and keeps the loads from being left out.

// Warm is for a packet that is to Pass.
func (t *Table) Warm(s *Seen) uint64 {
	c := t.arena.at(s.at.slot)
	return c.head.Load() + c.mut[7].Load()
}

// Near is where a packet is looked up in a zone, and where the answers to it: a
// Request can carry what was found out beforehand. The zero value is no packet's.
type Near struct {
	t     *Table
	words [2]keyWords
	at    place
}

// Near writes where a packet would be looked up in a zone.
func (t *Table) Near(n *Near, f *packet.Frame, l *packet.Layers, zone uint16) {
	var s shown
	if n.t = nil; !s.read(f.Bytes(), l, zone) {
		return
	}
	n.t = t
	s.key.store(&n.words[original])
	var back key
	s.key.reverse(&back)
	back.store(&n.words[reply])
	n.at = place{
		t.index.bucket(t.chains.hash(&n.words[original])),
		t.index.bucket(t.chains.hash(&n.words[reply])),
	}
}

// chain is the chain of a key, as it was found before if that is known.
func (t *Table) chain(w *keyWords, n *Near) uint32 {
	if n != nil && n.t == t && n.words[original].same(w) {
		return n.at.forward
	}
	return t.index.bucket(t.chains.hash(w))
}

// place is the two chains of a connection, as they were found before if they are
// known.
func (t *Table) place(f *fixedWords, n *Near) place {
	if n != nil && n.t == t && n.words[original].same(f.key(original)) && n.words[reply].same(f.key(reply)) {
		return n.at
	}
	return place{t.chain(f.key(original), n), t.index.bucket(t.chains.hash(f.key(reply)))}
}

// WarmNear is for packets that are to be looked up, or to begin connections.
func (t *Table) WarmNear(list []Near) (sink uint64) {
	for i := range list {
		if n := &list[i]; n.t == t {
			sink += uint64(t.index.heads[n.at.forward].Load()) + uint64(t.index.heads[n.at.back].Load())
		}
	}
	for i := range list {
		if n := &list[i]; n.t == t {
			sink += t.warmChain(n.at.forward) + t.warmChain(n.at.back)
		}
	}
	return sink
}

// warmChain touches the first cell of a chain.
func (t *Table) warmChain(at uint32) uint64 {
	r := t.index.heads[at].Load()
	if r == 0 || r&atEnd != 0 {
		return 0
	}
	c := t.arena.at(r >> 1)
	return c.head.Load() + c.keys[r&1][0].Load()
}
