package flowcache

import (
	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/packet"
)

// With many connections, nearly every packet finds its frame, its entry and its connection in
// main memory, one after the other. For the first packet of a connection, that holds for the
// places of conntrack's index. So each stage of a batch is read in advance: the processor then
// waits for several packets at once. Warming decides nothing.

const (
	// warmFrom is the number of entries that no longer fit into a core's own cache.
	warmFrom = 2048
	// BatchSize is the largest number of packets in a batch.
	BatchSize = 64
)

// Warming is the state that passes from stage to stage.
type Warming struct {
	// Zone is the conntrack zone that most packets are probably looked up in first.
	Zone uint16
	// Near is where conntrack will look each packet of the batch up in Zone.
	Near [BatchSize]conntrack.Near

	hashes [BatchSize]uint64
	found  [BatchSize]*Entry
	sink   uint64 // keeps the loads from being optimised away
}

// Warm reads the memory that the packets of a port's batch will need. firsts says that many of
// them may begin connections.
func (c *Exact) Warm(m *Warming, frames []*packet.Frame, port uint32, firsts bool, ct *conntrack.Table) {
	if firsts {
		m.warmNear(frames, &c.Sig, ct)
	}
	if c.live < warmFrom {
		return
	}
	var l packet.Layers
	for i, f := range frames {
		m.hashes[i] = 0
		if c.Sig.Read(f, port, &l) {
			m.hashes[i] = c.Sig.hash
		}
	}
	for _, h := range m.hashes[:len(frames)] {
		m.sink += uint64(c.tags[twoSets(h, len(c.tags))[0]][0])
	}
	for i, h := range m.hashes[:len(frames)] {
		if m.found[i] = c.likely(h); m.found[i] != nil {
			m.sink += m.found[i].warm()
		}
	}
	for _, e := range m.found[:len(frames)] {
		if e != nil {
			for s := range e.Steps {
				m.sink += ct.Warm(&e.CT[s])
			}
			if int(e.n) > len(e.near) {
				m.sink += e.far[0]
			}
		}
	}
}

// warm reads the three cache lines that IPv4 packets need.
func (e *Entry) warm() uint64 { return e.near[0] + e.CT[0].Warm() + uint64(e.Parts) }

// warmNear computes where first packets will be looked up, and reads that memory.
func (m *Warming) warmNear(frames []*packet.Frame, sig *Signature, ct *conntrack.Table) {
	var l packet.Layers
	for i, f := range frames {
		if sig.ReadLayers(f, &l) {
			ct.Near(&m.Near[i], f, &l, m.Zone)
		}
	}
	m.sink += ct.WarmNear(m.Near[:len(frames)])
}

// likely returns the entry that Find would probably return for a hash, or nil. It reads only
// tags.
func (c *Exact) likely(hash uint64) *Entry {
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
