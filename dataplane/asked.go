package dataplane

import "github.com/antrail/antrail/flow"

// keyBits is some bits of a key, word by word.
type keyBits [flow.KeyWords]uint64

// asked is the bits of a key that lookups depend on: whatever the other bits
// are, the lookups give the same. Each lookup adds to it where it reads the key.
type asked struct {
	bits  keyBits
	known keyBits // bits that are the same anyway, and are not added
}

// find adds what subtable.find reads: the common words up to the first that
// differs, and the others if none does.
func (a *asked) find(st *subtable, k *flow.Key) {
	for _, w := range st.common {
		a.bits[w.index] |= w.mask &^ a.known[w.index]
		if k.Word(int(w.index))&w.mask != w.value {
			return
		}
	}
	for _, w := range st.varying {
		a.bits[w.index] |= w.mask &^ a.known[w.index]
	}
}

// prefix adds a field whose trie is asked.
func (a *asked) prefix(f prefixField) {
	for i, m := range bitsOf(prefixPlaces[f].ID, flow.Ones(128)) {
		a.bits[i] |= m &^ a.known[i]
	}
}

// bitsOf is bits of a field as bits of the key.
func bitsOf(id flow.FieldID, mask flow.Value) (b keyBits) {
	var k flow.Key
	flow.FieldByID(id).Put(&k, mask, mask)
	for i := range b {
		b[i] = k.Word(i)
	}
	return b
}

// add adds bits, and says whether b had any that they lack.
func (b *keyBits) add(others *keyBits) (more bool) {
	for i, m := range others {
		more = more || b[i]&^m != 0
		b[i] |= m
	}
	return more
}

// list is the words that are not 0.
func (b *keyBits) list() (all []wordMask) {
	for i, m := range b {
		if m != 0 {
			all = append(all, wordMask{uint8(i), m})
		}
	}
	return all
}
