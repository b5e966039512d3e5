package conntrack

import (
	"github.com/antrail/antrail/conntrack/store"
	"github.com/antrail/antrail/conntrack/tuple"
	"github.com/antrail/antrail/packet"
)

// Warming loads the memory that a batch of packets will need into the processor's cache. The
// processor then waits for many loads at once, instead of one after the other. The functions
// decide nothing. The numbers that they return have no meaning: they prevent the compiler from
// removing the loads.

// Warm warms the cell for a packet that will Pass.
func (t *Table) Warm(s *Seen) uint64 { return t.arena.At(s.at.Slot).Warm() }

// Warm warms a Seen itself.
func (s *Seen) Warm() uint64 { return uint64(s.at.Slot) }

// Near holds the places where a packet and its replies are looked up in a zone, computed in
// advance for a Request. The zero value belongs to no packet.
type Near struct {
	t     *Table
	words [2]tuple.Words
	at    place
}

// Near writes the places where a packet would be looked up in a zone to n.
func (t *Table) Near(n *Near, f *packet.Frame, l *packet.Layers, zone uint16) {
	var s tuple.Packet
	if n.t = nil; !s.Read(f.Bytes(), l, zone) {
		return
	}
	n.t = t
	s.Key.Store(&n.words[tuple.Original])
	var back tuple.Key
	s.Key.Reverse(&back)
	back.Store(&n.words[tuple.Reply])
	n.at = place{
		t.index.Bucket(t.chains.Hash(&n.words[tuple.Original])),
		t.index.Bucket(t.chains.Hash(&n.words[tuple.Reply])),
	}
}

// chain is the chain of a key. It uses n if n has this key.
func (t *Table) chain(w *tuple.Words, n *Near) uint32 {
	if n != nil && n.t == t && n.words[tuple.Original].Equal(w) {
		return n.at.forward
	}
	return t.index.Bucket(t.chains.Hash(w))
}

// place is the two chains of a connection. It uses n if n has its keys.
func (t *Table) place(f *store.FixedWords, n *Near) place {
	if n != nil && n.t == t && n.words[tuple.Original].Equal(f.Key(tuple.Original)) && n.words[tuple.Reply].Equal(f.Key(tuple.Reply)) {
		return n.at
	}
	return place{t.chain(f.Key(tuple.Original), n), t.index.Bucket(t.chains.Hash(f.Key(tuple.Reply)))}
}

// WarmNear warms the chains for packets that will be looked up or begin connections.
func (t *Table) WarmNear(list []Near) (sink uint64) {
	for i := range list {
		if n := &list[i]; n.t == t {
			sink += t.index.WarmHead(n.at.forward) + t.index.WarmHead(n.at.back)
		}
	}
	for i := range list {
		if n := &list[i]; n.t == t {
			sink += t.index.WarmChain(t.arena, n.at.forward) + t.index.WarmChain(t.arena, n.at.back)
		}
	}
	return sink
}
