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

// Chains appends to a list where a packet would be looked up in a zone, and where
// the answers to it, for WarmChains.
func (t *Table) Chains(list []uint32, f *packet.Frame, l *packet.Layers, zone uint16) []uint32 {
	var s shown
	if !s.read(f.Bytes(), l, zone) {
		return list
	}
	var w keyWords
	s.key.store(&w)
	list = append(list, t.index.bucket(t.chains.hash(&w)))
	back := s.key.reversed()
	back.store(&w)
	return append(list, t.index.bucket(t.chains.hash(&w)))
}

// WarmChains is for packets that are to be looked up, or to begin connections.
func (t *Table) WarmChains(list []uint32) (sink uint64) {
	heads := t.index.heads
	for _, at := range list {
		sink += uint64(heads[at].Load())
	}
	for _, at := range list {
		if r := heads[at].Load(); r != 0 && r&atEnd == 0 {
			c := t.arena.at(r >> 1)
			sink += c.head.Load() + c.keys[r&1][0].Load()
		}
	}
	return sink
}
