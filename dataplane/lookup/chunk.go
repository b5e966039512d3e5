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

// copy copies the page for another edit.
func (p *page) copy(ed *edit) *page {
	n := &page{edit: ed}
	for i := range p.chunks {
		n.chunks[i].Store(p.chunks[i].Load())
	}
	return n
}

// chunk holds the rows whose hashes choose it, and an index of their values. Rows of one value
// lie side by side, by falling priority. Rows are not separate objects, because the garbage
// collector would visit each.
type chunk struct {
	edit *edit
	// index has, for each value, a word with the hash's upper half and the place of the first
	// row. The words of the value follow, in the order of subtable.varying.
	index []uint64
	rows  []row
}

// chunkLoad is the average number of values in a chunk after which the number of chunks doubles.
const chunkLoad = 6

// firstRows is the initial room for rows in a chunk of many.
const firstRows = chunkLoad / 2

// row is an entry in its subtable. Only the edit that made its chunk may change it.
type row struct {
	entry    *Entry
	clauses  *Clauses // of a soft entry
	hard     int32    // offset of the first hard row of this value; or noHard
	priority uint16
	mixed    bool // from this row on, one entry has different clauses
}

// noHard says that no row of the value from this one on is hard.
const noHard = -1

func newRow(e *Entry) row { return row{entry: e, clauses: e.clauses, priority: e.Priority} }

// before returns the row as it is in front of other rows of its value.
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

// betterThan says whether a hard row wins over another one, or over none. The higher priority
// wins; of equal ones, the row installed last.
func (r *row) betterThan(best *row) bool {
	return best == nil || r.priority > best.priority || r.priority == best.priority && r.entry.seq > best.entry.seq
}

// word is one word of the value that the row matches.
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

// span is the range of the rows of the value at a place in the index. size is the number of index
// words of a value.
func (c *chunk) span(at, size int) (first, end int) {
	end = len(c.rows)
	if next := at + size; next < len(c.index) {
		end = int(uint32(c.index[next]))
	}
	return int(uint32(c.index[at])), end
}

// moveRows adds n to the row positions of all values from a place in the index on.
func (c *chunk) moveRows(at, size, n int) {
	for ; at < len(c.index); at += size {
		c.index[at] += uint64(n)
	}
}

// tellBefore updates the rows from i-1 back to first, because they describe the rows behind them.
// end is the end of their value's rows.
func (c *chunk) tellBefore(first, i, end int) {
	for i--; i >= first; i-- {
		now := c.rows[i].before(c.rows[i+1 : end])
		if now == c.rows[i] {
			return // then the rows before it are up to date too
		}
		c.rows[i] = now
	}
}

// own is a chunk that an edit may change: this one, a copy of it, or an empty one. size is the
// number of index words of a value.
func (c *chunk) own(ed *edit, size int) *chunk {
	switch {
	case c == nil:
		return &chunk{edit: ed}
	case c.edit == ed:
		return c
	}
	return c.copy(ed, size)
}

// copy copies the chunk for another edit, with room for one more row.
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
