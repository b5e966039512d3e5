package lookup

import (
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/antrail/antrail/flow"
)

// subtable holds the entries of one mask, in a hash table over the mask's words of the key.
//
//  1. The words in which all entries agree (common) are compared first and are not hashed. So a
//     subtable of one entry hashes nothing.
//  2. The other words (varying) choose a chunk. A chunk holds about half a dozen values with
//     their rows side by side.
//  3. Chunks are grouped in pages. Changing one row of a hundred thousand copies one chunk, one
//     page and a list of pages, and shares the rest.
//  4. A row that is added while lookups read (putLive) copies only one chunk.
type subtable struct {
	common  []wordValue
	varying []WordMask
	// highest is at least every row's priority. After a removal it may be higher, until the next
	// rebuild.
	highest uint16
	// namesID: the mask has conj_id. byConjunction: in addition, conj_id is not 0 in any entry,
	// so none matches before a conjunction is complete.
	namesID, byConjunction bool
	prefixes               []prefix // fields of which the mask has a prefix

	chunks uint64
	only   *chunk  // if there is one chunk
	pages  []*page // if there are more

	mask     flow.Key
	minimask flow.Minimask // mask in its short form
	rows     int           // different values
	removed  int           // rows since the last rebuild
	expected int           // largest number of rows at the end of this edit; 0 if unknown
	edit     *edit
}

// WordMask is the mask of one 64-bit word of the key.
type WordMask struct {
	Index uint8
	Mask  uint64
}

// wordValue is a word that has the same value in all rows.
type wordValue struct {
	WordMask
	value uint64
}

func newSubtable(minimask flow.Minimask, ed *edit) *subtable {
	mask := minimask.Key()
	st := &subtable{mask: mask, minimask: minimask, prefixes: prefixesOf(&mask), namesID: mask.ConjID() != 0, edit: ed}
	st.resize(1)
	return st
}

// editable is a copy for an edit.
func (st *subtable) editable(ed *edit) *subtable {
	n := *st
	n.edit, n.expected = ed, 0
	n.pages = slices.Clone(st.pages)
	return &n
}

// resize empties the subtable and allocates room for a number of chunks.
func (st *subtable) resize(chunks uint64) {
	st.chunks, st.rows, st.removed, st.highest = chunks, 0, 0, 0
	st.only, st.pages = nil, nil
	if chunks == 1 {
		st.only = &chunk{edit: st.edit}
	} else {
		st.pages = make([]*page, (chunks+pageSize-1)/pageSize)
	}
}

// find returns the rows that match the key, highest priority first.
func (st *subtable) find(k *flow.Key) []row {
	for i := range st.common {
		if w := &st.common[i]; k.Word(int(w.Index))&w.Mask != w.value {
			return nil
		}
	}
	c := st.only
	if c != nil && len(st.varying) == 0 {
		return c.rows // all of the same value
	}
	h := st.hash(k)
	if c == nil {
		at := h & (st.chunks - 1)
		if p := st.pages[at/pageSize]; p != nil {
			c = p.chunks[at%pageSize].Load()
		}
		if c == nil {
			return nil
		}
	}
	if at := c.find(st.varying, uint32(h>>32), k); at >= 0 {
		first, end := c.span(at, 1+len(st.varying))
		return c.rows[first:end]
	}
	return nil
}

// hash is the hash of the varying words.
func (st *subtable) hash(k *flow.Key) uint64 {
	h := Seed
	for _, w := range st.varying {
		h = Mix(h, k.Word(int(w.Index))&w.Mask)
	}
	return h
}

// insert adds a row of a value. The caller has checked that no row has its match and priority.
func (st *subtable) insert(r row, value *flow.Key) {
	if st.rows == 0 {
		st.setFirstRow(r)
	} else if !st.agrees(r) || st.rows >= int(st.chunks)*chunkLoad {
		st.rebuild(&r)
		return
	}
	st.put(r, value)
}

// setFirstRow sets the words of an empty subtable from its first row. All of them are common.
func (st *subtable) setFirstRow(r row) {
	st.common, st.varying = nil, nil
	for i := range flow.KeyWords {
		if m := st.mask.Word(i); m != 0 {
			w := WordMask{uint8(i), m}
			st.common = append(st.common, wordValue{w, r.word(w)})
		}
	}
	st.byConjunction = st.namesID
}

// agrees says whether a row has the common words.
func (st *subtable) agrees(r row) bool {
	return !slices.ContainsFunc(st.common, func(w wordValue) bool { return r.word(w.WordMask) != w.value })
}

// put adds a row of a value to its chunk.
func (st *subtable) put(r row, value *flow.Key) {
	h := st.hash(value)
	st.highest = max(st.highest, r.priority)
	st.byConjunction = st.byConjunction && value.ConjID() != 0
	st.putIn(st.ownChunk(h&(st.chunks-1)), h, r, value)
}

// putLive is put while lookups read the subtable. One store replaces the row's chunk by a changed
// copy. If more than that would have to change, putLive does nothing and returns false.
func (st *subtable) putLive(r row, value *flow.Key) bool {
	if st.pages == nil || !st.agrees(r) || st.rows >= int(st.chunks)*chunkLoad ||
		r.priority > st.highest || st.byConjunction && value.ConjID() == 0 {
		return false
	}
	h := st.hash(value)
	at := h & (st.chunks - 1)
	p := st.pages[at/pageSize]
	if p == nil {
		return false
	}
	c := &chunk{}
	if old := p.chunks[at%pageSize].Load(); old != nil {
		c = old.copy(nil, 1+len(st.varying))
	}
	st.putIn(c, h, r, value)
	p.chunks[at%pageSize].Store(c)
	return true
}

// putIn adds a row of a value and its hash to its chunk, which the caller may change.
func (st *subtable) putIn(c *chunk, h uint64, r row, value *flow.Key) {
	at := c.find(st.varying, uint32(h>>32), value)
	if at < 0 {
		if c.rows == nil && st.pages != nil {
			c.rows, c.index = make([]row, 0, firstRows), make([]uint64, 0, firstRows*(1+len(st.varying)))
		}
		c.index = append(c.index, h>>32<<32|uint64(len(c.rows)))
		for _, w := range st.varying {
			c.index = append(c.index, r.word(w))
		}
		c.rows = append(c.rows, r.before(nil))
		st.rows++
		return
	}
	size := 1 + len(st.varying)
	first, end := c.span(at, size)
	i := first
	for i < end && c.rows[i].priority >= r.priority {
		i++
	}
	c.rows = slices.Insert(c.rows, i, r.before(c.rows[i:end]))
	c.moveRows(at+size, size, 1)
	c.tellBefore(first, i, end+1)
}

// ownChunk is the chunk at index i, or a copy of it, which the edit may change.
func (st *subtable) ownChunk(i uint64) *chunk {
	if st.only != nil {
		st.only = st.only.own(st.edit, 1+len(st.varying))
		return st.only
	}
	p := st.pages[i/pageSize]
	if p == nil {
		p = &page{edit: st.edit}
	} else if p.edit != st.edit {
		p = p.copy(st.edit)
	}
	st.pages[i/pageSize] = p
	c := p.chunks[i%pageSize].Load().own(st.edit, 1+len(st.varying))
	p.chunks[i%pageSize].Store(c)
	return c
}

// remove removes the row of an installed entry that has a value.
func (st *subtable) remove(e *Entry, value *flow.Key) {
	h := st.hash(value)
	c := st.ownChunk(h & (st.chunks - 1))
	st.removed++
	at, size := c.find(st.varying, uint32(h>>32), value), 1+len(st.varying)
	first, end := c.span(at, size)
	i := first + slices.IndexFunc(c.rows[first:end], func(r row) bool { return r.entry == e })
	c.rows = slices.Delete(c.rows, i, i+1)
	c.moveRows(at+size, size, -1)
	c.tellBefore(first, i, end-1)
	if first+1 == end {
		c.index = slices.Delete(c.index, at, at+size)
		st.rows--
	}
	if st.removed > st.rows && st.removed > pageSize {
		st.rebuild(nil)
	}
}

// rebuild rebuilds the subtable, with one more row unless that is nil. It computes common words,
// chunks and the highest priority from the rows.
func (st *subtable) rebuild(more *row) {
	var rows []row
	st.all(func(r *row) { rows = append(rows, *r) })
	if more != nil {
		rows = append(rows, *more)
	}
	chunks := uint64(1)
	for int(chunks)*chunkLoad <= max(len(rows), st.expected) {
		chunks *= 2
	}
	st.resize(chunks)
	if len(rows) == 0 {
		return
	}
	st.setFirstRow(rows[0])
	st.common = slices.DeleteFunc(st.common, func(w wordValue) bool {
		varies := slices.ContainsFunc(rows, func(r row) bool { return r.word(w.WordMask) != w.value })
		if varies {
			st.varying = append(st.varying, w.WordMask)
		}
		return varies
	})
	for _, r := range rows {
		value := r.entry.Match.Value()
		st.put(r, &value)
	}
}

// all visits every row.
func (st *subtable) all(visit func(*row)) {
	st.only.all(visit)
	for _, p := range st.pages {
		if p == nil {
			continue
		}
		for i := range p.chunks {
			p.chunks[i].Load().all(visit)
		}
	}
}

// Seed is secret, so that no sender can choose addresses that share a chunk.
var Seed = rand.Uint64()

// Mix folds one word into a hash. It takes both halves of the product with an odd
// constant, so every bit of the word reaches every bit of the hash.
func Mix(h, v uint64) uint64 {
	hi, lo := bits.Mul64(h^v, 0xff51afd7ed558ccd)
	return hi ^ lo
}
