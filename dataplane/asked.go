package dataplane

import "github.com/antrail/antrail/flow"

// asked is the bits of a key that lookups depend on: whatever the other bits
// are, the lookups give the same. Each lookup adds to it where it reads the key.
type asked [flow.KeyWords]uint64

// find adds what subtable.find reads: the common words up to the first that
// differs, and the others if none does.
func (a *asked) find(st *subtable, k *flow.Key) {
	if a == nil {
		return
	}
	for _, w := range st.common {
		a[w.index] |= w.mask
		if k.Word(int(w.index))&w.mask != w.value {
			return
		}
	}
	for _, w := range st.varying {
		a[w.index] |= w.mask
	}
}

// prefix adds a field whose trie is asked.
func (a *asked) prefix(f prefixField) {
	if a != nil {
		a.bits(prefixPlaces[f].ID, flow.Ones(128))
	}
}

// bits adds bits of a field.
func (a *asked) bits(id flow.FieldID, mask flow.Value) {
	var k flow.Key
	flow.FieldByID(id).Put(&k, mask, mask)
	for i := range a {
		a[i] |= k.Word(i)
	}
}

// add adds bits that others asked for, and says whether they had not asked for
// all of a's.
func (a *asked) add(others *asked) (more bool) {
	for i, m := range others {
		more = more || a[i]&^m != 0
		a[i] |= m
	}
	return more
}

// list is the mask of all that was asked for, as a list.
func (a *asked) list() (all []wordMask) {
	for i, m := range a {
		if m != 0 {
			all = append(all, wordMask{uint8(i), m})
		}
	}
	return all
}
