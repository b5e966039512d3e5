package lookup

import (
	"sync/atomic"

	"github.com/antrail/antrail/flow"
)

const pageSize = 64

type page struct {
	edit   *edit
	chunks [pageSize]atomic.Pointer[chunk]
}

// copy is the page for another edit.
func (p *page) copy(ed *edit) *page {
	n := &page{edit: ed}
	for i := range p.chunks {
		n.chunks[i].Store(p.chunks[i].Load())
	}
	return n
}

// chunk holds the rows whose hashes choose it, and an index of their values. Rows of one value
// lie side by side, by priority, falling. They are no objects of their own, because the garbage
// collector would have to go to each.
type chunk struct {
	edit *edit
	// index has, for each value, a word with the hash's upper half and the place of the first
	// row. The words of the value follow, in the order of subtable.varying.
	index []uint64
	rows  []row
}

// chunkLoad is how many values a chunk holds on average before there are twice
// as many chunks.
const chunkLoad = 6

// firstRows is for how many rows a chunk of many has room at first.
const firstRows = chunkLoad / 2

// row is an entry in its subtable. Only the edit that made its chunk may change it.
type row struct {
	entry    *Entry
	clauses  *Clauses // of a soft entry
	hard     int32    // how many rows further the first hard one of this value is; or noHard
	priority uint16
	mixed    bool // from here on, one entry has different clauses
}

// noHard says that no row of the value is hard from there on.
const noHard = -1

func newRow(e *Entry) row { return row{entry: e, clauses: e.clauses, priority: e.Priority} }

// before returns the row in front of others of its value.
func (r row) before(next []row) row {
	r.hard, r.mixed = 0, false
	if r.clauses != nil {
		r.hard, r.mixed = noHard, r.clauses.clause == 0
	}
	if len(next) > 0 {
		r.mixed = r.mixed || next[0].mixed
		if r.hard == noHard && next[0].hard != noHard {
			r.hard = next[0].hard + 1
		}
	}
	return r
}

// firstHard returns the best hard row of a value's rows, or nil.
func firstHard(rows []row) *row {
	if at := rows[0].hard; at != noHard {
		return &rows[at]
	}
	return nil
}

// betterThan says whether a hard row wins over another, or over none: by
// priority, then as the one installed last.
func (r *row) betterThan(best *row) bool {
	return best == nil || r.priority > best.priority || r.priority == best.priority && r.entry.seq > best.entry.seq
}

// word is one word of the value that the row asks for.
func (r *row) word(w WordMask) uint64 { return r.entry.Match.Word(int(w.Index)) }

// find is the place of a key's value in the index, or -1.
func (c *chunk) find(words []WordMask, tag uint32, k *flow.Key) int {
next:
	for at := 0; at < len(c.index); at += 1 + len(words) {
		if uint32(c.index[at]>>32) != tag {
			continue
		}
		values := c.index[at+1:]
		for j, w := range words {
			if k.Word(int(w.Index))&w.Mask != values[j] {
				continue next
			}
		}
		return at
	}
	return -1
}

// span is where the rows of the value at a place in the index begin and end. size is the number of
// words that a value has there.
func (c *chunk) span(at, size int) (first, end int) {
	end = len(c.rows)
	if next := at + size; next < len(c.index) {
		end = int(uint32(c.index[next]))
	}
	return int(uint32(c.index[at])), end
}

// moveRows notes that the rows of values from a place in the index on have moved by n.
func (c *chunk) moveRows(at, size, n int) {
	for ; at < len(c.index); at += size {
		c.index[at] += uint64(n)
	}
}

// tellBefore brings up to date what rows know of those behind them, from the one before i back to
// first. end is the end of their value's rows.
func (c *chunk) tellBefore(first, i, end int) {
	for i--; i >= first; i-- {
		now := c.rows[i].before(c.rows[i+1 : end])
		if now == c.rows[i] {
			return // then those before know it, too
		}
		c.rows[i] = now
	}
}

// own is the chunk, or a copy of it, or an empty one, that an edit may change. size is the number of
// words that a value has in the index.
func (c *chunk) own(ed *edit, size int) *chunk {
	switch {
	case c == nil:
		return &chunk{edit: ed}
	case c.edit == ed:
		return c
	}
	return c.copy(ed, size)
}

// copy is the chunk for another edit, with room for one more row.
func (c *chunk) copy(ed *edit, size int) *chunk {
	return &chunk{
		ed, append(make([]uint64, 0, len(c.index)+size), c.index...),
		append(make([]row, 0, len(c.rows)+1), c.rows...),
	}
}

func (c *chunk) all(visit func(*row)) {
	if c == nil {
		return
	}
	for i := range c.rows {
		visit(&c.rows[i])
	}
}
