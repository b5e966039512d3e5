package dataplane

import (
	"cmp"
	"slices"
	"time"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/ports"
)

// FlowStats is an installed entry with its counters.
type FlowStats struct {
	*flow.Entry
	Packets, Bytes uint64
	Duration       time.Duration // since installation
	Idle           time.Duration // since the last packet, or installation
	Learned        bool
}

// GroupStats is an installed group with its counters; Buckets is in the order
// of the group's buckets.
type GroupStats struct {
	*flow.Group
	Packets, Bytes uint64
	Buckets        []BucketStats
}

// BucketStats are the counters of one bucket.
type BucketStats struct {
	Packets uint64 `json:"packets"`
	Bytes   uint64 `json:"bytes"`
}

// MeterStats is an installed meter with its counters; Dropped is by band.
type MeterStats struct {
	*flow.Meter
	Packets, Bytes uint64
	Dropped        []uint64
}

// TableStats is a table with its counters.
type TableStats struct {
	ID            uint8                 `json:"id"`
	Name          string                `json:"name"`
	Shape         Shape                 `json:"shape"`
	Entries       int                   `json:"entries"`
	Learned       int                   `json:"learned"`
	Masks         int                   `json:"masks"` // distinct masks: subtables of the lookup
	Lookups       uint64                `json:"lookups"`
	Hits          uint64                `json:"hits"`
	Times         TableTimes            `json:"times"`
	DropsByReason map[DropReason]uint64 `json:"drops,omitzero"`
}

// PortStats is a port with its counters.
type PortStats struct {
	No   uint32 `json:"ofPort"`
	Name string `json:"name"`
	// Worker is the number of the one that receives from it, and Load the part
	// of its time that this port's packets took lately: 0 to 1.
	Worker     int     `json:"worker"`
	Load       float64 `json:"load"`
	ports.Info `json:"info"`
	// Stats has all packets; ByKernel those of them that passed by shortcuts.
	ports.Stats `json:"stats"`
	ByKernel    KernelStats `json:"byKernel"`
	MACs        MACStats    `json:"macs"`
}

// Names returns the names of the tables; nil without a pipeline.
func (s *Switch) Names() *flow.Names {
	if p := s.program.Load(); p != nil {
		return p.names
	}
	return nil
}

// First is the table that packets enter at.
func (s *Switch) First() uint8 {
	if p := s.program.Load(); p != nil {
		return p.first
	}
	return 0
}

// Learnings counts the changes of learned entries.
func (s *Switch) Learnings() uint64 { return s.learnings.Load() }

// Generation counts the changes of the pipeline.
func (s *Switch) Generation() uint64 {
	if p := s.program.Load(); p != nil {
		return p.generation
	}
	return 0
}

// Flows returns all entries, learned ones too, by table, then by priority,
// falling, then as installed.
func (s *Switch) Flows() []FlowStats {
	s.creditNow()
	p, now := s.program.Load(), s.clock()
	if p == nil {
		return nil
	}
	var all []FlowStats
	for _, t := range p.tables {
		if t != nil {
			all = t.appendFlows(all, now)
		}
	}
	return all
}

// FlowsIn is Flows of one table, which costs nothing for the entries of others.
func (s *Switch) FlowsIn(table uint8) []FlowStats {
	s.creditNow()
	p := s.program.Load()
	if p == nil || p.tables[table] == nil {
		return nil
	}
	return p.tables[table].appendFlows(nil, s.clock())
}

// appendFlows appends the table's entries to all, by priority.
func (t *table) appendFlows(all []FlowStats, now int64) []FlowStats {
	entries := append(t.classifier.list(), t.live.learned.list()...)
	slices.SortStableFunc(entries, func(a, b *entry) int { return cmp.Compare(b.Priority, a.Priority) })
	for _, e := range entries {
		if e.expired(now) {
			continue
		}
		all = append(all, FlowStats{
			Entry: e.Entry, Packets: e.packets.Load(), Bytes: e.bytes.Load(), Learned: e.learned,
			Duration: time.Duration(now - e.installed.Load()), Idle: time.Duration(now - e.used.Load()),
		})
	}
	return all
}

// Groups returns all groups by ID.
func (s *Switch) Groups() []GroupStats {
	s.creditNow()
	p := s.program.Load()
	if p == nil {
		return nil
	}
	var all []GroupStats
	for _, g := range p.groups.all() {
		st := GroupStats{Group: g.Group, Packets: g.packets.Load(), Bytes: g.bytes.Load()}
		for i := range g.buckets {
			st.Buckets = append(st.Buckets, BucketStats{g.buckets[i].packets.Load(), g.buckets[i].bytes.Load()})
		}
		all = append(all, st)
	}
	return all
}

// Meters returns all meters by ID.
func (s *Switch) Meters() []MeterStats {
	p := s.program.Load()
	if p == nil {
		return nil
	}
	var all []MeterStats
	for _, m := range p.meters.all() {
		st := MeterStats{Meter: m.Meter, Packets: m.came.packets.Load(), Bytes: m.came.bytes.Load(), Dropped: make([]uint64, len(m.bands))}
		for i := range m.bands {
			st.Dropped[i] = m.bands[i].dropped.packets.Load()
		}
		all = append(all, st)
	}
	return all
}

// Tables returns all tables by number.
func (s *Switch) Tables() []TableStats {
	s.creditNow()
	p := s.program.Load()
	if p == nil {
		return nil
	}
	var all []TableStats
	for id, t := range p.tables {
		if t == nil {
			continue
		}
		all = append(all, TableStats{
			ID: uint8(id), Name: p.names.Table(uint8(id)), Shape: t.classifier.shape(), Entries: t.classifier.entries,
			Learned: t.live.learned.count(), Masks: len(t.classifier.subtables),
			Lookups: t.live.lookups.Load(), Hits: t.live.hits.Load(),
			Times: t.live.times(), DropsByReason: s.dropsOf(id),
		})
	}
	return all
}

// dropsOf sums a table's drops over the workers.
func (s *Switch) dropsOf(table int) map[DropReason]uint64 {
	m := make(map[DropReason]uint64)
	for _, w := range append(slices.Clone(s.workers), s.outside) {
		for r := range w.drops[table] {
			if n := w.drops[table][r].Load(); n != 0 {
				m[DropReason(r)] += n
			}
		}
	}
	return m
}

// Drops counts lost packets by reason.
func (s *Switch) Drops() map[DropReason]uint64 {
	m := make(map[DropReason]uint64)
	for table := range 256 {
		for r, n := range s.dropsOf(table) {
			m[r] += n
		}
	}
	return m
}

// Ports returns all ports by number.
func (s *Switch) Ports() []PortStats {
	s.creditNow()
	var all []PortStats
	for _, p := range s.ports.Load().list {
		st, by := p.port.Stats(), p.kernel.stats()
		st.RxPackets, st.RxBytes = st.RxPackets+by.RxPackets, st.RxBytes+by.RxBytes
		st.TxPackets, st.TxBytes = st.TxPackets+by.TxPackets, st.TxBytes+by.TxBytes
		all = append(all, PortStats{p.no, p.port.Name(), int(p.worker.Load()), p.share.part(), p.port.Info(), st, by, p.macs.stats()})
	}
	return all
}

// Specimen is the last packet that a port lost for a reason in its own words, if
// the port keeps any.
func (s *Switch) Specimen(no uint32, reason string) (x ports.Specimen) {
	if p := s.ports.Load().byNumber[no]; p != nil {
		if c, ok := p.port.(ports.Collector); ok {
			x = c.Specimen(reason)
		}
	}
	return x
}

// LearnedMACs returns what NORMAL has learned.
func (s *Switch) LearnedMACs() []LearnedMAC { return s.fdb.list(s.clock()) }

// Sleeps counts how often the workers went to sleep in poll(2).
func (s *Switch) Sleeps() uint64 {
	var n uint64
	for _, w := range s.workers {
		n += w.counts.sleeps.Load()
	}
	return n
}
