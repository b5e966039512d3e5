package dataplane

import (
	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/packet"
)

// With many connections nearly every packet finds its frame, its entry and its
// connections in main memory, one after the other. So a batch is looked at
// beforehand, stage by stage: the processor then waits for several packets at
// once. Nothing is decided here.

// warmFrom is how many entries do not fit into a core's own cache.
const warmFrom = 2048

// warming is what the stages hand on; sink keeps the loads from being left out.
type warming struct {
	hashes [batchSize]uint64
	found  [batchSize]*cached
	sink   uint64
}

// warm touches what the packets of a batch will need.
func (c *cache) warm(frames []*packet.Frame, inPort uint32, ct *conntrack.Table) {
	if c == nil || c.live < warmFrom {
		return
	}
	m := &c.warming
	var l packet.Layers
	for i, f := range frames {
		m.hashes[i] = 0
		if c.sig.read(f, inPort, &l) {
			m.hashes[i] = c.sig.hash
		}
	}
	for _, h := range m.hashes[:len(frames)] {
		m.sink += uint64(c.tags[twoSets(h, len(c.tags))[0]][0])
	}
	for i, h := range m.hashes[:len(frames)] {
		if m.found[i] = c.likely(h); m.found[i] != nil {
			m.sink += m.found[i].near[5] + uint64(m.found[i].parts)
		}
	}
	for _, e := range m.found[:len(frames)] {
		if e != nil {
			for s := range e.steps {
				m.sink += ct.Warm(&e.ct[s])
			}
		}
	}
}

// likely is the entry that find would most likely give for a hash.
func (c *cache) likely(hash uint64) *cached {
	want := tag(hash)
	for _, at := range twoSets(hash, len(c.tags)) {
		for i := range ways {
			if c.tags[at][i] == want {
				return &c.places[at][i]
			}
		}
	}
	return nil
}
