package dataplane

import "sync/atomic"

// CacheEvent is something that connection caches count. The list is closed:
// dumps and metrics come from it.
type CacheEvent uint8

// The events.
const (
	CacheHit CacheEvent = iota
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
	numCacheEvents
)

var cacheTexts = [numCacheEvents]struct{ name, sentence string }{
	CacheHit:       {"hit", "Packets that were treated as one before, without a lookup."},
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
	Entries, Paths, Room uint64
	// Events is counts by CacheEvent.
	Events [numCacheEvents]uint64
}

// cacheTotals is what others see of a worker's cache.
type cacheTotals struct {
	entries, paths, room atomic.Uint64
	events               [numCacheEvents]atomic.Uint64
}

// publish adds the batch's counts to what others see.
func (c *cache) publish() {
	t := &c.totals
	for i, n := range c.count {
		if n != 0 {
			t.events[i].Add(n)
			c.count[i] = 0
		}
	}
	if c.dirty {
		c.dirty = false
		t.entries.Store(uint64(c.live))
		t.paths.Store(uint64(len(c.paths)))
		t.room.Store(uint64(len(c.tags) * ways))
	}
}

// Cache is what the connection caches of all workers hold and have done.
func (s *Switch) Cache() CacheStats {
	var st CacheStats
	for _, w := range s.workers {
		if w.cache == nil {
			continue
		}
		t := &w.cache.totals
		st.Entries += t.entries.Load()
		st.Paths += t.paths.Load()
		st.Room += t.room.Load()
		for i := range t.events {
			st.Events[i] += t.events[i].Load()
		}
	}
	return st
}
