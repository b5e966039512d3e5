package lookup

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"sync/atomic"

	"github.com/antrail/antrail/flow"
)

// subtable holds the entries of one mask, as a hash table over the words of
// the key that the mask looks at.
//
// The words in which all entries agree (common) are compared first and are not hashed. So
// a subtable of one entry has nothing to hash at all. The others (varying) choose one of
// the chunks, and a chunk holds about half a dozen rows with their values side by side.
// Chunks hang in pages. Changing one row of a hundred thousand copies one chunk, one page
// and a list of pages, and shares the rest. A row that comes while lookups read (putLive)
// copies one chunk only.
type subtable struct {
	common  []wordValue
	varying []WordMask
	// highest is no less than any row's priority. It may be more after a
	// removal, until the next rebuild.
	highest uint16
	// namesID: the mask has conj_id. byConjunction: and every entry has one
	// other than 0, so none matches before a conjunction is complete.
	namesID, byConjunction bool
	prefixes               []prefix // fields of which the mask takes a prefix

	chunks uint64
	only   *chunk  // when there is one
	pages  []*page // when there are more

	mask     flow.Key
	maskHash uint64
	rows     int // different values
	removed  int // rows since the last rebuild
	expected int // rows at the end of this edit, at most; 0 if unknown
	edit     *edit
}

// WordMask is one 64-bit word of the key that a subtable looks at.
type WordMask struct {
	Index uint8
	Mask  uint64
}

// wordValue is a word that has the same value in all rows.
type wordValue struct {
	WordMask
	value uint64
}

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

// chunk holds the rows whose hashes choose it: for each its tag (the hash's
// upper half) and its values, in the order of subtable.varying.
type chunk struct {
	edit   *edit
	tags   []uint32
	values []uint64
	rows   []*row
}

// chunkLoad is how many rows a chunk holds on average before there are twice
// as many chunks.
const chunkLoad = 6

// row is an entry in its subtable. Within its edit it may change; one without never does.
type row struct {
	edit     *edit
	entry    *Entry
	clauses  *Clauses // of a soft entry
	next     *row     // of the same match and a lower priority
	hard     *row     // the first from here on that is
	priority uint16
	mixed    bool // from here on, one entry has different clauses
}

func newRow(e *Entry, ed *edit) *row {
	r := &row{edit: ed, entry: e, clauses: e.clauses, priority: e.Priority}
	r.before(nil)
	return r
}

// before puts a row that nobody reads yet in front of others.
func (r *row) before(next *row) {
	r.next, r.hard, r.mixed = next, r, false
	if r.clauses != nil {
		r.hard, r.mixed = nil, r.clauses.clause == 0
	}
	if next != nil {
		r.mixed = r.mixed || next.mixed
		if r.hard == nil {
			r.hard = next.hard
		}
	}
}

// betterThan says whether a hard row wins over another, or over none: by
// priority, then as the one installed last.
func (r *row) betterThan(best *row) bool {
	return best == nil || r.priority > best.priority || r.priority == best.priority && r.entry.seq > best.entry.seq
}

// word is one word of the value that the row asks for.
func (r *row) word(w WordMask) uint64 { return r.entry.Match.Value.Word(int(w.Index)) }

func newSubtable(mask *flow.Key, ed *edit) *subtable {
	st := &subtable{mask: *mask, maskHash: hashMask(mask), prefixes: prefixesOf(mask), namesID: mask.ConjID() != 0, edit: ed}
	st.resize(1)
	return st
}

// editable is a copy that may be changed within an edit.
func (st *subtable) editable(ed *edit) *subtable {
	n := *st
	n.edit, n.expected = ed, 0
	n.pages = slices.Clone(st.pages)
	return &n
}

// resize empties the subtable and gives it room for a number of chunks.
func (st *subtable) resize(chunks uint64) {
	st.chunks, st.rows, st.removed, st.highest = chunks, 0, 0, 0
	st.only, st.pages = nil, nil
	if chunks == 1 {
		st.only = &chunk{edit: st.edit}
	} else {
		st.pages = make([]*page, (chunks+pageSize-1)/pageSize)
	}
}

// find returns the row of highest priority that matches the key.
func (st *subtable) find(k *flow.Key) *row {
	for i := range st.common {
		if w := &st.common[i]; k.Word(int(w.Index))&w.Mask != w.value {
			return nil
		}
	}
	h := st.hash(k)
	c := st.only
	if c == nil {
		at := h & (st.chunks - 1)
		if p := st.pages[at/pageSize]; p != nil {
			c = p.chunks[at%pageSize].Load()
		}
		if c == nil {
			return nil
		}
	}
	if i := c.find(st.varying, uint32(h>>32), k); i >= 0 {
		return c.rows[i]
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

// find is the place of a key's row in the chunk, or -1.
func (c *chunk) find(words []WordMask, tag uint32, k *flow.Key) int {
next:
	for i, t := range c.tags {
		if t != tag {
			continue
		}
		values := c.values[i*len(words):]
		for j, w := range words {
			if k.Word(int(w.Index))&w.Mask != values[j] {
				continue next
			}
		}
		return i
	}
	return -1
}

// insert adds a row. None of its match and priority is there.
func (st *subtable) insert(r *row) {
	if st.rows == 0 {
		st.setFirstRow(r)
	} else if !st.agrees(r) || st.rows >= int(st.chunks)*chunkLoad {
		st.rebuild(r)
		return
	}
	st.put(r)
}

// setFirstRow gives an empty subtable its first row's words: all of them common.
func (st *subtable) setFirstRow(r *row) {
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
func (st *subtable) agrees(r *row) bool {
	return !slices.ContainsFunc(st.common, func(w wordValue) bool { return r.word(w.WordMask) != w.value })
}

// put puts a row in its chunk.
func (st *subtable) put(r *row) {
	h := st.hash(&r.entry.Match.Value)
	st.highest = max(st.highest, r.priority)
	st.byConjunction = st.byConjunction && r.entry.Match.Value.ConjID() != 0
	st.putIn(st.ownChunk(h&(st.chunks-1)), h, r)
}

// putLive is put while lookups read the subtable: one store puts a copy of the
// row's chunk in the chunk's place. It reports false, and does nothing, where
// more than that would have to change.
func (st *subtable) putLive(r *row) bool {
	if st.pages == nil || !st.agrees(r) || st.rows >= int(st.chunks)*chunkLoad ||
		r.priority > st.highest || st.byConjunction && r.entry.Match.Value.ConjID() == 0 {
		return false
	}
	h := st.hash(&r.entry.Match.Value)
	at := h & (st.chunks - 1)
	p := st.pages[at/pageSize]
	if p == nil {
		return false
	}
	c := &chunk{}
	if old := p.chunks[at%pageSize].Load(); old != nil {
		c = old.copy(nil)
	}
	st.putIn(c, h, r)
	p.chunks[at%pageSize].Store(c)
	return true
}

// putIn puts a row of a hash into its chunk, which may be changed.
func (st *subtable) putIn(c *chunk, h uint64, r *row) {
	if i := c.find(st.varying, uint32(h>>32), &r.entry.Match.Value); i >= 0 {
		c.rows[i] = c.rows[i].with(r, c.edit)
		return
	}
	c.tags = append(c.tags, uint32(h>>32))
	for _, w := range st.varying {
		c.values = append(c.values, r.word(w))
	}
	c.rows = append(c.rows, r)
	st.rows++
}

// with is a chain of rows with one more, by priority, falling. Rows of another edit,
// which other chains share, are not changed, but those of this edit are. If a chain grew
// by a row a hundred times by copies, its rows would lie far apart in memory. The garbage
// collector would take long to go from one to the next.
func (r *row) with(more *row, ed *edit) *row {
	if r == nil || more.priority > r.priority {
		more.before(r)
		return more
	}
	n := r.own(ed)
	n.before(n.next.with(more, ed))
	return n
}

// own is the row, or a copy of it, that an edit may change.
func (r *row) own(ed *edit) *row {
	if ed != nil && r.edit == ed {
		return r
	}
	n := *r
	n.edit = ed
	return &n
}

// without is a chain of rows without an entry's.
func (r *row) without(e *Entry) *row {
	if r.entry == e {
		return r.next
	}
	n := *r
	n.before(r.next.without(e))
	return &n
}

// ownChunk is a chunk that may be changed.
func (st *subtable) ownChunk(i uint64) *chunk {
	if st.only != nil {
		st.only = st.only.own(st.edit)
		return st.only
	}
	p := st.pages[i/pageSize]
	if p == nil {
		p = &page{edit: st.edit}
	} else if p.edit != st.edit {
		p = p.copy(st.edit)
	}
	st.pages[i/pageSize] = p
	c := p.chunks[i%pageSize].Load().own(st.edit)
	p.chunks[i%pageSize].Store(c)
	return c
}

// own is the chunk, or a copy of it, or an empty one, that an edit may change.
func (c *chunk) own(ed *edit) *chunk {
	switch {
	case c == nil:
		return &chunk{edit: ed}
	case c.edit == ed:
		return c
	}
	return c.copy(ed)
}

// copy is the chunk for another edit, with room for one more row.
func (c *chunk) copy(ed *edit) *chunk {
	rows := len(c.rows)
	words := len(c.values) / max(rows, 1)
	return &chunk{
		ed, append(make([]uint32, 0, rows+1), c.tags...),
		append(make([]uint64, 0, (rows+1)*words), c.values...), append(make([]*row, 0, rows+1), c.rows...),
	}
}

// remove takes out the row of an entry that is there.
func (st *subtable) remove(e *Entry) {
	k := &e.Match.Value
	h := st.hash(k)
	c := st.ownChunk(h & (st.chunks - 1))
	i := c.find(st.varying, uint32(h>>32), k)
	st.removed++
	if left := c.rows[i].without(e); left != nil {
		c.rows[i] = left
	} else {
		c.removeAt(i, len(st.varying))
		st.rows--
	}
	if st.removed > st.rows && st.removed > pageSize {
		st.rebuild(nil)
	}
}

// removeAt puts the last row in the place of one that goes.
func (c *chunk) removeAt(i, words int) {
	last := len(c.rows) - 1
	c.tags[i], c.rows[i] = c.tags[last], c.rows[last]
	copy(c.values[i*words:(i+1)*words], c.values[last*words:])
	c.tags, c.rows, c.values = c.tags[:last], c.rows[:last], c.values[:last*words]
}

// rebuild lays the subtable out again, with one row more unless that is nil. Common
// words, chunks and the highest priority are what the rows need now.
func (st *subtable) rebuild(more *row) {
	var rows []*row
	st.all(func(r *row) { rows = append(rows, newRow(r.entry, st.edit)) })
	if more != nil {
		rows = append(rows, more)
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
		varies := slices.ContainsFunc(rows, func(r *row) bool { return r.word(w.WordMask) != w.value })
		if varies {
			st.varying = append(st.varying, w.WordMask)
		}
		return varies
	})
	for _, r := range rows {
		st.put(r)
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

func (c *chunk) all(visit func(*row)) {
	if c == nil {
		return
	}
	for _, r := range c.rows {
		for ; r != nil; r = r.next {
			visit(r)
		}
	}
}

// Seed is secret, so that nobody can choose addresses that share a chunk.
var Seed = rand.Uint64()

// Mix folds one word into a hash. It takes both halves of the product with an odd
// constant, so every bit of the word reaches every bit of the hash.
func Mix(h, v uint64) uint64 {
	hi, lo := bits.Mul64(h^v, 0xff51afd7ed558ccd)
	return hi ^ lo
}

func hashMask(mask *flow.Key) uint64 {
	h := Seed
	for i := range flow.KeyWords {
		h = Mix(h, mask.Word(i))
	}
	return h
}
