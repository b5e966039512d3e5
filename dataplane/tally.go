package dataplane

// A worker counts in its own memory and tells the entries and tables once per
// batch: packets of a batch mostly hit the same entries, and an addition to
// memory that other workers and readers share costs more than a lookup. What a
// batch counted is told before its frames are sent, so whoever sees a packet
// leave also sees its counters.

// tallySlots is how many entries a worker counts for at once; two entries that
// share a slot are told more often. A power of two.
const tallySlots = 1024

// tally is what one worker's batch has counted.
type tally struct {
	slots   [tallySlots]credit
	used    []uint16 // slots that hold something
	tables  [256]tableTally
	buckets bucketTally
	seen    []uint8 // tables that hold something
}

// credit is packets of one entry.
type credit struct {
	to             *counters
	packets, bytes uint64
}

// tableTally is lookups in one table.
type tableTally struct {
	to            *tableState
	lookups, hits uint64
	times         TableTimes
}

// credit counts one packet for an entry.
func (t *tally) credit(to *counters, size int, now int64) {
	i := uint16(to.slot % tallySlots)
	c := &t.slots[i]
	if c.to != to {
		if c.to != nil {
			c.tell(now)
		} else {
			t.used = append(t.used, i)
		}
		*c = credit{to: to}
	}
	c.packets++
	c.bytes += uint64(size)
}

// tell adds a credit to the entry's counters.
func (c *credit) tell(now int64) {
	c.to.packets.Add(c.packets)
	c.to.bytes.Add(c.bytes)
	c.to.used.Store(now)
}

// looked counts a lookup in a table.
func (t *tally) looked(id uint8, to *tableState, hit bool) *tableTally {
	c := &t.tables[id]
	if c.to != to {
		if c.to != nil {
			c.tell()
		} else {
			t.seen = append(t.seen, id)
		}
		*c = tableTally{to: to}
	}
	c.lookups++
	if hit {
		c.hits++
	}
	return c
}

func (c *tableTally) tell() {
	c.to.lookups.Add(c.lookups)
	c.to.hits.Add(c.hits)
	if c.times.Timed > 0 {
		c.to.add(c.times)
	}
}

// tell adds everything to the counters that others see, and begins anew.
func (t *tally) tell(now int64) {
	for _, i := range t.used {
		t.slots[i].tell(now)
		t.slots[i] = credit{}
	}
	for _, id := range t.seen {
		t.tables[id].tell()
		t.tables[id] = tableTally{}
	}
	t.used, t.seen = t.used[:0], t.seen[:0]
	t.buckets.tell()
}

// bucketTally is tally for groups, their buckets, and meters.
type bucketTally struct {
	slots [bucketSlots]bucketCredit
	used  []uint16
}

// bucketSlots is how many of them a worker counts for at once. A power of two.
const bucketSlots = 256

type bucketCredit struct {
	to             *bucketCounters
	packets, bytes uint64
}

// credit counts one packet for a group, bucket or meter.
func (t *bucketTally) credit(to *bucketCounters, size int) {
	i := uint16(to.slot % bucketSlots)
	c := &t.slots[i]
	if c.to != to {
		if c.to != nil {
			c.tell()
		} else {
			t.used = append(t.used, i)
		}
		*c = bucketCredit{to: to}
	}
	c.packets++
	c.bytes += uint64(size)
}

func (c *bucketCredit) tell() {
	c.to.packets.Add(c.packets)
	c.to.bytes.Add(c.bytes)
}

// tell adds everything to the counters that others see, and begins anew.
func (t *bucketTally) tell() {
	for _, i := range t.used {
		t.slots[i].tell()
		t.slots[i] = bucketCredit{}
	}
	t.used = t.used[:0]
}
