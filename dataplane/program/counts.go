package program

import "github.com/antrail/antrail/dataplane/lookup"

// A worker counts in its own memory and publishes once per batch. Packets of a batch mostly
// hit the same entries, and an addition to shared memory costs more than a lookup. The worker
// publishes before it sends the frames of the batch, so a program that sees a packet leave
// also sees its counters.

// countSlots is the number of entries for which a worker counts at once. Two entries that
// share a slot are published more often. It is a power of two.
const countSlots = 1024

// Counts is the unpublished counts of one worker's batch.
type Counts struct {
	slots   [countSlots]Count
	used    []uint16 // non-empty slots
	tables  [256]TableCount
	Buckets BucketCounts
	seen    []uint8 // tables with counts
}

// Count is the packets of one entry.
type Count struct {
	to             *lookup.Counters
	packets, bytes uint64
}

// TableCount is the lookups of one table.
type TableCount struct {
	to            *lookup.TableState
	lookups, hits uint64
	Times         lookup.TableTimes
}

// Count counts one packet for an entry.
func (t *Counts) Count(to *lookup.Counters, size int, now int64) {
	i := uint16(to.Slot % countSlots)
	c := &t.slots[i]
	if c.to != to {
		if c.to != nil {
			c.Publish(now)
		} else {
			t.used = append(t.used, i)
		}
		*c = Count{to: to}
	}
	c.packets++
	c.bytes += uint64(size)
}

// Publish adds the packets to the entry's counters.
func (c *Count) Publish(now int64) {
	c.to.Packets.Add(c.packets)
	c.to.Bytes.Add(c.bytes)
	c.to.Used.Store(now)
}

// CountLookup counts a lookup in a table.
func (t *Counts) CountLookup(id uint8, to *lookup.TableState, hit bool) *TableCount {
	c := &t.tables[id]
	if c.to != to {
		if c.to != nil {
			c.Publish()
		} else {
			t.seen = append(t.seen, id)
		}
		*c = TableCount{to: to}
	}
	c.lookups++
	if hit {
		c.hits++
	}
	return c
}

func (c *TableCount) Publish() {
	c.to.Lookups.Add(c.lookups)
	c.to.Hits.Add(c.hits)
	if c.Times.Timed > 0 {
		c.to.AddTimes(c.Times)
	}
}

// Publish adds everything to the shared counters and resets the counts.
func (t *Counts) Publish(now int64) {
	for _, i := range t.used {
		t.slots[i].Publish(now)
		t.slots[i] = Count{}
	}
	for _, id := range t.seen {
		t.tables[id].Publish()
		t.tables[id] = TableCount{}
	}
	t.used, t.seen = t.used[:0], t.seen[:0]
	t.Buckets.Publish()
}

// BucketCounts is Counts for groups, buckets and meters.
type BucketCounts struct {
	slots [bucketSlots]bucketCount
	used  []uint16
}

// bucketSlots is the number of groups, buckets and meters for which a worker counts at once. It
// is a power of two.
const bucketSlots = 256

type bucketCount struct {
	to             *BucketCounters
	packets, bytes uint64
}

// Count counts one packet for a group, bucket or meter.
func (t *BucketCounts) Count(to *BucketCounters, size int) {
	i := uint16(to.slot % bucketSlots)
	c := &t.slots[i]
	if c.to != to {
		if c.to != nil {
			c.Publish()
		} else {
			t.used = append(t.used, i)
		}
		*c = bucketCount{to: to}
	}
	c.packets++
	c.bytes += uint64(size)
}

func (c *bucketCount) Publish() {
	c.to.Packets.Add(c.packets)
	c.to.Bytes.Add(c.bytes)
}

// Publish adds everything to the shared counters and resets the counts.
func (t *BucketCounts) Publish() {
	for _, i := range t.used {
		t.slots[i].Publish()
		t.slots[i] = bucketCount{}
	}
	t.used = t.used[:0]
}
