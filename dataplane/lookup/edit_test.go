package lookup

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/antrail/antrail/flow"
)

// TestEditedClassifier edits a classifier at random many times, and compares each result with a
// classifier newly built from the same entries. Earlier classifiers must still find what they
// found.
func TestEditedClassifier(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 3))
	all := randomEntries(r, 300)
	here := map[*Entry]bool{}
	c := newClassifier(nil)
	for step := range 1000 {
		var gone, come []*Entry
		for range 1 + r.IntN(8) {
			e := all[r.IntN(len(all))]
			if here[e] {
				gone = append(gone, e)
			} else {
				come = append(come, e)
			}
			here[e] = !here[e]
		}
		gone, come = settled(gone, come)
		k, keys := randomKey(r), r.Uint64()
		before := finds(c, keys)
		next := edited(c, gone, come)
		if !slices.Equal(finds(c, keys), before) {
			t.Fatalf("seed %d, step %d: an edit changed the classifier before it", seed, step)
		}
		var left []*Entry
		for _, e := range all {
			if here[e] {
				left = append(left, e)
			}
		}
		fresh := newClassifier(left)
		for range 50 {
			var a, b Scratch
			if got, want := a.Find(next, k), b.Find(fresh, k); got != want {
				t.Fatalf("seed %d, step %d: edited finds %s, built anew %s", seed, step, describe(got), describe(want))
			}
			k = randomKey(r)
		}
		c = next
	}
}

// testEntry is an entry without compiled actions.
func testEntry(e *flow.Entry, seq uint64) *Entry {
	return NewEntry(e, newClauses(e.Actions), nil, seq, 0)
}

// newClassifier is a classifier of entries.
func newClassifier(entries []*Entry) *Classifier {
	return edited(&Classifier{}, nil, entries)
}

// edited is a classifier after entries went and others came. If the number of new entries
// is even, the classifier expects them before they come.
func edited(c *Classifier, gone, come []*Entry) *Classifier {
	n := c.editable()
	for _, e := range gone {
		n.remove(e)
	}
	for _, e := range come {
		if len(come)%2 == 0 {
			n.Expect(e.Match.Mask(), 10*len(come))
		}
	}
	for _, e := range come {
		n.insert(e)
	}
	n.Sort()
	return n
}

// settled leaves out what went and came back in one edit.
func settled(gone, come []*Entry) (g, c []*Entry) {
	count := map[*Entry]int{}
	for _, e := range gone {
		count[e]--
	}
	for _, e := range come {
		count[e]++
	}
	for e, n := range count {
		switch {
		case n < 0:
			g = append(g, e)
		case n > 0:
			c = append(c, e)
		}
	}
	return g, c
}

// finds is what a classifier finds for keys that seed stands for.
func finds(c *Classifier, seed uint64) (all []*Entry) {
	r := rand.New(rand.NewPCG(seed, 4))
	for range 20 {
		var s Scratch
		all = append(all, s.Find(c, randomKey(r)))
	}
	return all
}

// TestTrieEdits edits a trie many times over. The copy before must go on having the prefixes that it
// had, and nodes that are gone must not gather.
func TestTrieEdits(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 5))
	type prefix struct {
		value  aligned
		length uint8
	}
	var tree trie
	there := map[prefix]int{}
	has := func(t *trie, p prefix) bool { _, lacks := t.lacks(p.value, p.length); return !lacks }
	for step := range 2000 {
		before, had := tree, maps.Clone(there)
		tree = tree.editable()
		for range 1 + r.IntN(5) {
			p := prefix{length: uint8(1 + r.IntN(7))}
			p.value = aligned{hi: uint64(r.IntN(128)) << 57}.cut(p.length)
			if there[p] > 0 && r.IntN(3) > 0 {
				there[p]--
				tree.remove(p.value, p.length)
			} else {
				there[p]++
				tree.insert(p.value, p.length)
			}
		}
		for p := range there {
			if has(&before, p) != (had[p] > 0) || has(&tree, p) != (there[p] > 0) {
				t.Fatalf("seed %d, step %d: %x/%d: before %v, there were %d; now %v, there are %d", seed, step, p.value.hi, p.length, has(&before, p), had[p], has(&tree, p), there[p])
			}
		}
	}
	if n, most := len(tree.nodes), 4*len(there)+100; n > most {
		t.Errorf("%d nodes for %d prefixes, want at most %d", n, len(there), most)
	}
}

// TestEditSharesTheRest asserts that one entry more copies one chunk of a large
// subtable, and leaves all others to both classifiers.
func TestEditSharesTheRest(t *testing.T) {
	var entries []*Entry
	for i := range 10_000 {
		var m flow.Match
		m.AddExact(flow.IPDst, flow.Value{Lo: uint64(i)})
		entries = append(entries, testEntry(&flow.Entry{Priority: 200, Match: m.Mini()}, uint64(i)))
	}
	before := newClassifier(entries[1:])
	after := edited(before, nil, entries[:1])
	chunks, copied := map[*chunk]bool{}, 0
	forEachChunk(before, func(c *chunk) { chunks[c] = true })
	forEachChunk(after, func(c *chunk) {
		if !chunks[c] {
			copied++
		}
	})
	if len(chunks) < 1000 || copied != 1 {
		t.Errorf("%d of %d chunks were copied, want 1 of more than 1000", copied, len(chunks))
	}
}

// TestEditOwnsItsRows asserts that entries of one match that come in one edit share memory, and
// that a later edit does not change rows that packets read.
func TestEditOwnsItsRows(t *testing.T) {
	entries := func(n int) (all []*Entry) {
		for i := range n {
			var m flow.Match
			m.AddExact(flow.IPDst, flow.Value{Lo: 1})
			all = append(all, testEntry(&flow.Entry{Priority: uint16(n - i), Match: m.Mini()}, uint64(i)))
		}
		return all
	}
	all := entries(400)
	if few, many := testing.AllocsPerRun(10, func() { newClassifier(all[:200]) }), testing.AllocsPerRun(10, func() { newClassifier(all) }); many-few > 10 {
		t.Errorf("200 entries take %v allocations, 400 %v", few, many)
	}
	priorities := func(c *Classifier) (list []uint16) {
		value := all[0].Match.Value()
		for _, r := range c.subtables[0].find(&value) {
			list = append(list, r.priority)
		}
		return list
	}
	before := newClassifier(all[:3])
	after := edited(before, all[1:2], all[3:5])
	if was, is := priorities(before), priorities(after); !slices.Equal(was, []uint16{400, 399, 398}) || !slices.Equal(is, []uint16{400, 398, 397, 396}) {
		t.Errorf("the priorities %v became %v", was, is)
	}
}

func forEachChunk(c *Classifier, visit func(*chunk)) {
	for _, st := range c.subtables {
		for _, p := range st.pages {
			for i := range p.chunks {
				if c := p.chunks[i].Load(); c != nil {
					visit(c)
				}
			}
		}
	}
}

// BenchmarkLookupPrefixes looks up addresses in a table whose clauses have
// prefixes of every length, as a tenant's policies may: the cost is that of the
// lengths that match the address, not of those that exist.
func BenchmarkLookupPrefixes(b *testing.B) {
	for _, lengths := range []int{1, 8, 31} {
		b.Run(strconv.Itoa(lengths)+" lengths", func(b *testing.B) {
			var entries []*Entry
			for i := range lengths {
				var m flow.Match
				m.AddExact(flow.EthType, flow.Value{Lo: 0x800})
				m.Add(flow.IPSrc, flow.Value{Lo: 0xffffffff << (31 - i)}, flow.Ones(32).AndNot(flow.Ones(31-i)))
				e := &flow.Entry{Priority: 200, Match: m.Mini(), Actions: []flow.Action{flow.Conjunction{ID: uint32(i + 1), Clause: 1, N: 2}}}
				entries = append(entries, testEntry(e, uint64(i)))
			}
			c, k := newClassifier(entries), &flow.Key{}
			flow.FieldByID(flow.EthType).Put(k, flow.Value{Lo: 0x800}, flow.Ones(16))
			var s Scratch
			for b.Loop() {
				s.Find(c, k)
			}
		})
	}
}
