package dataplane

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/antrail/antrail/flow"
)

// CacheEvent is something that connection caches count. The list is closed:
// dumps and metrics come from it.
type CacheEvent uint8

// The events.
const (
	CacheHit CacheEvent = iota
	CacheOpened
	CacheMiss
	CacheUnfit
	CacheAsked
	CacheLearned
	CacheKept
	CacheOnce
	CacheRefused
	CacheDisplaced
	CacheOverShare
	CacheFlushed
	StretchTaken
	StretchMiss
	StretchKept
	StretchOnce
	StretchRefused
	StretchDisplaced
	StretchWidened
	StretchVoid
	numCacheEvents
)

var cacheTexts = [numCacheEvents]struct{ name, sentence string }{
	CacheHit:       {"hit", "Packets that were treated as one before, without a lookup."},
	CacheOpened:    {"opened", "First packets of connections that were treated as those of others between the same ends, without a lookup."},
	CacheMiss:      {"miss", "Packets that walked because nothing was remembered of their like."},
	CacheUnfit:     {"unfit", "Packets that always walk: neither TCP, UDP nor ICMP echo, fragments, VLAN tags, IP options."},
	CacheAsked:     {"asked", "Packets that walked because their connection had changed, or was to."},
	CacheLearned:   {"learned", "Packets that walked because learned entries had changed."},
	CacheKept:      {"kept", "Walks that were remembered."},
	CacheOnce:      {"once", "Walks that were not, because their packet was the first of its like."},
	CacheRefused:   {"refused", "Walks that were not, because other ports have their places by right."},
	CacheDisplaced: {"displaced", "Entries that had to go for another one of their port."},
	CacheOverShare: {"over_share", "Entries of a port beyond its share that had to go for one of another port."},
	CacheFlushed:   {"flushed", "Entries that a change of the pipeline or the ports made void."},

	StretchTaken:     {"stretch_taken", "Stretches of walks that were taken as once before, without a lookup."},
	StretchMiss:      {"stretch_miss", "Stretches that were walked because nothing was remembered of their like."},
	StretchKept:      {"stretch_kept", "Stretches that were remembered."},
	StretchOnce:      {"stretch_once", "Stretches that were not, because they were the first of their like."},
	StretchRefused:   {"stretch_refused", "Stretches that were not: other ports have their places by right, or they ask for too much."},
	StretchDisplaced: {"stretch_displaced", "Stretches that had to go for others."},
	StretchWidened:   {"stretch_widened", "Times that a table had too many shapes, so that one of them had to ask for more."},
	StretchVoid:      {"stretch_void", "Ways of stretches that a change of a table, or of a shape, made void."},
}

// String is the event's name, as metrics show it.
func (e CacheEvent) String() string { return cacheTexts[e].name }

// Sentence tells an operator what is counted.
func (e CacheEvent) Sentence() string { return cacheTexts[e].sentence }

// CacheStats is what the workers' connection caches hold, as of their last
// batch, and what they have counted.
type CacheStats struct {
	// Entries are remembered walks; Paths is how many different ways they took;
	// Room is how many entries fit before the caches grow.
	Entries uint64 `json:"entries"`
	Paths   uint64 `json:"paths"`
	Room    uint64 `json:"room"`
	// Stretches are remembered stretches, void ones among them until their place
	// is needed; Shapes is how many different masks they have.
	Stretches uint64 `json:"stretches"`
	Shapes    uint64 `json:"shapes"`
	// Events is counts by CacheEvent.
	Events [numCacheEvents]uint64 `json:"events"`
}

// cacheTotals is what others see of a worker's cache.
type cacheTotals struct {
	entries, paths, room atomic.Uint64
	cacheCounts
}

// cacheCounts is events as others see them.
type cacheCounts [numCacheEvents]atomic.Uint64

// add adds a batch's counts, and begins them anew.
func (c *cacheCounts) add(batch []uint64) {
	for i, n := range batch {
		if n != 0 {
			c[i].Add(n)
			batch[i] = 0
		}
	}
}

// firsts is how many packets of the batch were the first of their connection, or of
// their like.
func (c *cache) firsts() uint64 {
	if c == nil {
		return 0
	}
	return c.count[CacheMiss] + c.count[CacheOpened]
}

// publish adds the batch's counts to what others see.
func (c *cache) publish() {
	t := &c.totals
	t.add(c.count[:])
	if c.dirty {
		c.dirty = false
		t.entries.Store(uint64(c.live))
		t.paths.Store(uint64(len(c.paths)))
		t.room.Store(uint64(len(c.tags) * ways))
	}
}

// publish adds the batch's counts to what others see.
func (s *stretches) publish() {
	t := &s.totals
	t.add(s.count[:])
	if s.dirty {
		s.dirty = false
		shapes := 0
		for _, all := range s.shapes {
			shapes += len(all)
		}
		t.entries.Store(uint64(s.live))
		t.shapes.Store(uint64(shapes))
	}
	if s.reshaped {
		s.reshaped = false
		list := slices.Concat(s.shapes[:]...)
		t.list.Store(&list)
	}
}

// stretchTotals is what others see of a worker's stretches.
type stretchTotals struct {
	entries, shapes atomic.Uint64
	list            atomic.Pointer[[]*shape]
	cacheCounts
}

// Cache is what the connection caches of all workers hold and have done.
func (s *Switch) Cache() CacheStats {
	var st CacheStats
	for _, w := range s.workers {
		if c := w.cache; c != nil {
			st.Entries += c.totals.entries.Load()
			st.Paths += c.totals.paths.Load()
			st.Room += c.totals.room.Load()
			st.add(&c.totals.cacheCounts)
		}
		if c := w.stretches; c != nil {
			st.Stretches += c.totals.entries.Load()
			st.Shapes += c.totals.shapes.Load()
			st.add(&c.totals.cacheCounts)
		}
	}
	return st
}

func (s *CacheStats) add(c *cacheCounts) {
	for i := range c {
		s.Events[i] += c[i].Load()
	}
}

// CacheShape is a mask by which stretches that begin in a table are found.
type CacheShape struct {
	Table uint8 `json:"table"`
	// Fields is the fields of the mask, those of which it has some bits with them:
	// "in_port,nw_src/255.0.0.0,tcp_dst/0xff00". Ports are TCP's whatever the
	// protocol.
	Fields string `json:"fields"`
	// Packets is how many packets took a stretch of this mask.
	Packets uint64 `json:"packets"`
}

// CacheShapes is the masks of all workers by table, equal ones as one.
func (s *Switch) CacheShapes() (all []CacheShape) {
	for _, w := range s.workers {
		if w.stretches == nil {
			continue
		}
		list := w.stretches.totals.list.Load()
		if list == nil {
			continue
		}
		for _, o := range *list {
			c := CacheShape{Table: o.table, Fields: o.whole.text(), Packets: o.served.Load()}
			same := func(have CacheShape) bool { return have.Table == c.Table && have.Fields == c.Fields }
			if i := slices.IndexFunc(all, same); i >= 0 {
				all[i].Packets += c.Packets
			} else {
				all = append(all, c)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b CacheShape) int {
		return cmp.Or(cmp.Compare(a.Table, b.Table), cmp.Compare(b.Packets, a.Packets))
	})
	return all
}

// text names the fields that have bits, and which they have when not all.
func (b *keyBits) text() string {
	var k flow.Key
	for i, w := range b {
		k.SetWord(i, w, w)
	}
	var fields []string
	for _, id := range flow.Diff(&flow.Key{}, &k) {
		f := flow.FieldByID(id)
		text := f.Name
		switch v := f.Get(&k); {
		case v == flow.Ones(f.Bits):
		case id == flow.IPSrc || id == flow.IPDst || id == flow.EthSrc || id == flow.EthDst:
			_, mask, _ := strings.Cut(flow.FieldText(id, &k, nil), "=")
			text += "/" + mask
		case v.Hi != 0:
			text += fmt.Sprintf("/0x%x%016x", v.Hi, v.Lo)
		default:
			text += fmt.Sprintf("/%#x", v.Lo)
		}
		fields = append(fields, text)
	}
	return strings.Join(fields, ",")
}
