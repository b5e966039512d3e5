package dataplane

import (
	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/packet"
)

// With many connections nearly every packet finds its frame, its entry and its
// connections in main memory, one after the other; the first packets of
// connections, the places of the index where they are looked up. So a batch is
// looked at beforehand, stage by stage: the processor then waits for several
// packets at once. Nothing is decided here.

// warmFrom is how many entries do not fit into a core's own cache.
const warmFrom = 2048

// warmNew is how many first packets a port's batch must have had for its next one
// to be looked at for their sake.
const warmNew = 8

// warming is what the stages hand on; sink keeps the loads from being left out.
type warming struct {
	hashes [batchSize]uint64
	found  [batchSize]*cached
	sink   uint64

	zone uint16 // where packets are looked up first, most likely
	near [batchSize]conntrack.Near
}

// warm touches what the packets of a batch from a port will need.
func (c *cache) warm(frames []*packet.Frame, p *polled, ct *conntrack.Table) {
	if c == nil {
		return
	}
	m := &c.warming
	if p.firsts >= warmNew {
		m.warmNear(frames, &c.sig, ct)
	}
	if c.live < warmFrom {
		return
	}
	var l packet.Layers
	for i, f := range frames {
		m.hashes[i] = 0
		if c.sig.read(f, p.no, &l) {
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

// warmNear finds out where first packets will be looked up, and touches that.
func (m *warming) warmNear(frames []*packet.Frame, sig *signature, ct *conntrack.Table) {
	var l packet.Layers
	for i, f := range frames {
		if sig.layers(f, &l) {
			ct.Near(&m.near[i], f, &l, m.zone)
		}
	}
	m.sink += ct.WarmNear(m.near[:len(frames)])
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
