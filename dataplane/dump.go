package dataplane

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"github.com/antrail/antrail/dataplane/l2"
	"github.com/antrail/antrail/dataplane/lookup"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/ports"
)

// Names returns the names of the tables; nil without a pipeline.
func (s *Switch) Names() *flow.Names { return s.current().Names }

// First is the table that packets enter at.
func (s *Switch) First() uint8 { return s.current().First }

// Learnings counts the changes of learned entries.
func (s *Switch) Learnings() uint64 { return s.learnings.Load() }

// Generation counts the changes of the pipeline.
func (s *Switch) Generation() uint64 { return s.current().Generation }

// Flows returns all entries, learned ones included. They are sorted by table, then by falling
// priority, then by installation.
func (s *Switch) Flows() (all []telemetry.FlowStats) {
	s.creditNow()
	now := s.clock()
	for _, t := range s.current().EachTable() {
		all = appendFlows(all, listed(t), now)
	}
	return all
}

// LearnedFlows is Flows of learned entries. It does not read the others.
func (s *Switch) LearnedFlows() (all []telemetry.FlowStats) {
	s.creditNow()
	now := s.clock()
	for _, t := range s.current().EachTable() {
		all = appendFlows(all, t.Live.Learned.List(), now)
	}
	return all
}

// FlowsIn is Flows of one table. It does not read the entries of others.
func (s *Switch) FlowsIn(table uint8) []telemetry.FlowStats {
	s.creditNow()
	t := s.current().Tables[table]
	if t == nil {
		return nil
	}
	return appendFlows(nil, listed(t), s.clock())
}

// listed returns a table's entries by priority.
func listed(t *lookup.Table) []*lookup.Entry {
	entries := append(t.Static.List(), t.Live.Learned.List()...)
	slices.SortStableFunc(entries, func(a, b *lookup.Entry) int { return cmp.Compare(b.Priority, a.Priority) })
	return entries
}

// appendFlows appends the entries that have not expired to all.
func appendFlows(all []telemetry.FlowStats, entries []*lookup.Entry, now int64) []telemetry.FlowStats {
	for _, e := range entries {
		if !e.Expired(now) {
			all = append(all, statsOf(e, now))
		}
	}
	return all
}

func statsOf(e *lookup.Entry, now int64) telemetry.FlowStats {
	return telemetry.FlowStats{
		Entry: e.Entry, Packets: e.Packets.Load(), Bytes: e.Bytes.Load(), Learned: e.Learned,
		Duration: time.Duration(now - e.InstalledAt.Load()), Idle: time.Duration(now - e.Used.Load()),
	}
}

// Groups returns all groups by ID.
func (s *Switch) Groups() (all []telemetry.GroupStats) {
	s.creditNow()
	for _, g := range s.current().Groups.All() {
		st := telemetry.GroupStats{Group: g.Group, Packets: g.Packets.Load(), Bytes: g.Bytes.Load()}
		for i := range g.Buckets {
			st.Buckets = append(st.Buckets, telemetry.BucketStats{Packets: g.PerBucket[i].Packets.Load(), Bytes: g.PerBucket[i].Bytes.Load()})
		}
		all = append(all, st)
	}
	return all
}

// Meters returns all meters by ID.
func (s *Switch) Meters() (all []telemetry.MeterStats) {
	for _, m := range s.current().Meters.All() {
		st := telemetry.MeterStats{Meter: m.Meter, Packets: m.Came.Packets.Load(), Bytes: m.Came.Bytes.Load(), Dropped: make([]uint64, len(m.Bands))}
		for i := range m.Bands {
			st.Dropped[i] = m.Buckets[i].Dropped.Packets.Load()
		}
		all = append(all, st)
	}
	return all
}

// Tables returns all tables by number.
func (s *Switch) Tables() (all []telemetry.TableStats) {
	s.creditNow()
	p := s.current()
	for id, t := range p.EachTable() {
		all = append(all, telemetry.TableStats{
			ID: id, Name: p.Names.Table(id), Shape: t.Static.Shape(), Entries: t.Static.Size(),
			Learned: t.Live.Learned.Count(), Masks: t.Static.Masks(),
			Lookups: t.Live.Lookups.Load(), Hits: t.Live.Hits.Load(),
			Times: t.Live.Times(), DropsByReason: s.dropsOf(id),
		})
	}
	return all
}

// dropsOf sums a table's drops over the workers.
func (s *Switch) dropsOf(table uint8) map[telemetry.DropReason]uint64 {
	m := make(map[telemetry.DropReason]uint64)
	for _, w := range s.everyWorker() {
		for r := range w.drops[table] {
			if n := w.drops[table][r].Load(); n != 0 {
				m[telemetry.DropReason(r)] += n
			}
		}
	}
	return m
}

// Drops counts dropped packets by reason.
func (s *Switch) Drops() map[telemetry.DropReason]uint64 {
	m := make(map[telemetry.DropReason]uint64)
	for table := range 256 {
		for r, n := range s.dropsOf(uint8(table)) {
			m[r] += n
		}
	}
	return m
}

// Ports returns all ports by number.
func (s *Switch) Ports() (all []telemetry.PortStats) {
	s.creditNow()
	for _, p := range s.ports.Load().list {
		st, by := p.port.Stats(), p.kernel.Counts.Stats()
		st.RxPackets, st.RxBytes = st.RxPackets+by.RxPackets, st.RxBytes+by.RxBytes
		st.TxPackets, st.TxBytes = st.TxPackets+by.TxPackets, st.TxBytes+by.TxBytes
		all = append(all, telemetry.PortStats{No: p.no, Name: p.port.Name(), Worker: p.share.Worker(), Load: p.share.Part(), Info: p.port.Info(), Config: *p.config.Load(), Stats: st, ByKernel: by, MACs: p.macs.Stats()})
	}
	return all
}

// PortsMark returns a number that changes when a port comes, goes or drops a frame. A port that has
// sent frames since the last call reads its link's state, to count frames to a link that is down.
func (s *Switch) PortsMark() uint64 {
	h := fnv.New64a()
	for _, p := range s.ports.Load().list {
		st := p.port.Stats()
		if p.sent.Swap(st.TxPackets) != st.TxPackets {
			p.port.Info()
		}
		fmt.Fprintln(h, p.no, p.port.Name(), st.RxDropped, st.RxErrors, st.TxDropped, st.TxErrors)
	}
	return h.Sum64()
}

// DropSample is the last packet that a port dropped for a reason in its own words, if
// the port keeps any.
func (s *Switch) DropSample(no uint32, reason string) (x ports.DropSample) {
	if p := s.ports.Load().byNumber[no]; p != nil {
		if c, ok := p.port.(ports.Collector); ok {
			x = c.DropSample(reason)
		}
	}
	return x
}

// LearnedMACs returns what NORMAL has learned.
func (s *Switch) LearnedMACs() []telemetry.LearnedMAC { return s.fdb.List(s.clock()) }

// MACTableStats counts the addresses that NORMAL learns.
func (s *Switch) MACTableStats() telemetry.MACTableStats { return s.fdb.Stats() }

// FlushMACs forgets the addresses that NORMAL has learned. Its error is always nil; a switch
// behind a socket returns one if it is unreachable.
func (s *Switch) FlushMACs() error {
	s.fdb.Remove(func(*l2.Station) bool { return true })
	return nil
}

// Sleeps counts how often the workers went to sleep in poll(2).
func (s *Switch) Sleeps() uint64 {
	var n uint64
	for _, w := range s.workers {
		n += w.counts.sleeps.Load()
	}
	return n
}

// endBatch publishes the packets that the flow cache counted in this batch.
func (w *worker) endBatch() {
	if c := w.cache; c != nil {
		c.endBatch(w)
		c.publish()
	}
	if w.megaflows != nil {
		w.megaflows.EndBatch(w.now)
	}
}

// creditNow credits all packets counted until now to entries, tables, groups and ports. The
// counts are in the kernel's offload entries, in paths, and in megaflows.
func (s *Switch) creditNow() {
	s.crediting.Lock() // a second reader waits, so that it sees the same
	defer s.crediting.Unlock()
	s.offload.CreditNow()
	for _, w := range s.workers {
		if w.cache != nil {
			w.cache.creditAll()
		}
		if w.megaflows != nil {
			w.megaflows.CreditAll()
		}
	}
}

// Cache returns the contents and counters of all workers' flow caches.
func (s *Switch) Cache() telemetry.CacheStats {
	var st telemetry.CacheStats
	for _, w := range s.workers {
		if c := w.cache; c != nil {
			st.Entries += c.totals.entries.Load()
			st.Paths += c.totals.paths.Load()
			st.Room += c.totals.room.Load()
			c.totals.AddTo(&st)
		}
		if m := w.megaflows; m != nil {
			st.Megaflows += m.Totals.Entries.Load()
			st.Shapes += m.Totals.Shapes.Load()
			m.Totals.AddTo(&st)
		}
	}
	return st
}

// CacheShapes returns the megaflow masks of all workers by table, equal ones as one.
func (s *Switch) CacheShapes() (all []telemetry.CacheShape) {
	for _, w := range s.workers {
		if w.megaflows != nil {
			all = w.megaflows.Totals.AddShapes(all)
		}
	}
	slices.SortStableFunc(all, func(a, b telemetry.CacheShape) int {
		return cmp.Or(cmp.Compare(a.Table, b.Table), cmp.Compare(b.Packets, a.Packets))
	})
	return all
}

// Sums over entries are for a reader that reads once a second, with perhaps a hundred thousand
// entries. The class of an entry is determined once. After that, each read loads one counter per
// entry, sorts nothing and allocates nothing. Learned entries change without a change of the
// pipeline, so each read lists them again.

// ClassCounters sum the packets of entries by class. They are for one goroutine, and valid for
// one generation of the pipeline.
type ClassCounters struct {
	sw         *Switch
	class      func(*flow.Entry) int
	generation uint64
	entries    []classed
	learned    map[*lookup.Entry]int
	counters   []ClassSum
}

// classed is an entry of the pipeline.
type classed struct {
	*lookup.Entry
	class int
}

// ClassSum is how many entries a class has, and how many packets they counted.
type ClassSum struct{ Entries, Packets uint64 }

// ClassCounters starts them. Classes are small numbers from 0.
func (s *Switch) ClassCounters(class func(*flow.Entry) int) *ClassCounters {
	t := &ClassCounters{sw: s, class: class}
	p := s.current()
	t.generation = p.Generation
	for _, tab := range p.EachTable() {
		tab.Static.All(func(e *lookup.Entry) { t.entries = append(t.entries, classed{e, class(e.Entry)}) })
	}
	return t
}

// Generation is the generation of the pipeline that they are valid for.
func (t *ClassCounters) Generation() uint64 { return t.generation }

// Sum is the sums by class, valid until the next call. ok is false if the pipeline has changed.
func (t *ClassCounters) Sum() (counters []ClassSum, ok bool) {
	t.sw.creditNow()
	p, now := t.sw.current(), t.sw.clock()
	if p.Generation != t.generation {
		return nil, false
	}
	clear(t.counters)
	for i := range t.entries {
		t.addEntry(t.entries[i].Entry, t.entries[i].class, now)
	}
	before := t.learned
	t.learned = nil
	for _, tab := range p.EachTable() {
		if tab.Live.Learned.None() {
			continue
		}
		tab.Live.Learned.All(func(e *lookup.Entry) {
			class, known := before[e]
			if !known {
				class = t.class(e.Entry)
			}
			if t.learned == nil {
				t.learned = make(map[*lookup.Entry]int, len(before))
			}
			t.learned[e] = class
			t.addEntry(e, class, now)
		})
	}
	return t.counters, true
}

func (t *ClassCounters) addEntry(e *lookup.Entry, class int, now int64) {
	if e.Expired(now) {
		return
	}
	for len(t.counters) <= class {
		t.counters = append(t.counters, ClassSum{})
	}
	t.counters[class].Entries++
	t.counters[class].Packets += e.Packets.Load()
}

// Workers returns what the workers did, by number.
func (s *Switch) Workers() (all []telemetry.WorkerStats) {
	for i, w := range s.workers {
		c := &w.counts
		st := telemetry.WorkerStats{
			No: i, Batches: c.batches.Load(), Packets: c.packets.Load(), Sleeps: c.sleeps.Load(),
			Working: time.Duration(c.working.Load()), Spinning: time.Duration(c.spinning.Load()), Asleep: time.Duration(c.sleeping.Load()),
			KeptAwake: w.hold.Total(),
		}
		set := w.receive.Load()
		st.Blind = set.blind
		for _, p := range set.list {
			st.Ports = append(st.Ports, p.no)
			st.Load += p.share.Part()
		}
		for b := range c.wakes.Counts {
			st.Wakes[b] = c.wakes.Counts[b].Load()
		}
		all = append(all, st)
	}
	return all
}
