package dataplane

import (
	"math/bits"

	"github.com/antrail/antrail/flow"
)

// keyBits is some bits of a key, word by word.
type keyBits [flow.KeyWords]uint64

// asked is the bits of a key that lookups depend on: whatever the other bits
// are, the lookups give the same. Each lookup adds to it where it reads the key.
type asked struct {
	bits  keyBits
	known keyBits // bits that are the same anyway, and are not added
}

// find adds the bits on which depends that a subtable gave a row, or nil.
func (a *asked) find(c *classifier, st *subtable, r *row, k *flow.Key) {
	if r == nil {
		a.missed(c, st, k)
		return
	}
	for _, w := range st.common {
		a.bits[w.index] |= w.mask &^ a.known[w.index]
	}
	a.varying(st)
}

func (a *asked) varying(st *subtable) {
	for _, w := range st.varying {
		a.bits[w.index] |= w.mask &^ a.known[w.index]
	}
}

// missed adds bits that tell by themselves that a subtable has no row for a key,
// unless those asked for already do: a byte in which all rows differ from it,
// else the first bytes of an address or port that no entry of the table begins
// with, else all that the rows are told apart by. So a table with a few ports
// lets all the other ports share what they are remembered by.
func (a *asked) missed(c *classifier, st *subtable, k *flow.Key) {
	if a.tells(st, k) || a.differs(st, k, false) || a.differs(st, k, true) {
		return
	}
	best, fewest := keyBits{}, 0
	for _, p := range st.prefixes {
		f := prefixPlaces[p.field]
		n, ok := c.values[p.field].lacks(leftAligned(f, k), p.bits)
		if !ok {
			continue
		}
		var b keyBits
		for i := range int(n+7) / 8 {
			b.addByte(f.Off + i)
		}
		if more := b.beyond(a); fewest == 0 || more < fewest {
			best, fewest = b, more
		}
		if fewest == 0 {
			return
		}
	}
	if fewest == 0 {
		a.varying(st)
	}
	a.add(&best)
}

// tells says whether the bits asked for tell a key apart from all rows.
func (a *asked) tells(st *subtable, k *flow.Key) bool {
	for _, w := range st.common {
		if (k.Word(int(w.index))^w.value)&w.mask&(a.bits[w.index]|a.known[w.index]) != 0 {
			return true
		}
	}
	return false
}

// differs adds the first byte in which a key differs from all rows, if there is
// one: of addresses and ports, which are many, or of others.
func (a *asked) differs(st *subtable, k *flow.Key, many bool) bool {
	for _, w := range st.common {
		different := (k.Word(int(w.index)) ^ w.value) & w.mask
		if different == 0 || manyValues[w.index] != many {
			continue
		}
		at := bits.TrailingZeros64(different) &^ 7 // the key's first byte is the word's lowest
		a.bits[w.index] |= w.mask & (0xff << at) &^ a.known[w.index]
		return true
	}
	return false
}

// manyValues is the words that have addresses or ports.
var manyValues = func() (many [flow.KeyWords]bool) {
	for _, f := range prefixPlaces {
		for i, m := range bitsOf(f.ID, flow.Ones(f.Bits)) {
			many[i] = many[i] || m != 0
		}
	}
	return many
}()

// add adds bits.
func (a *asked) add(b *keyBits) {
	for i, m := range b {
		a.bits[i] |= m &^ a.known[i]
	}
}

// addByte adds the byte at an offset in the key.
func (b *keyBits) addByte(at int) { b[at/8] |= 0xff << (at % 8 * 8) }

// beyond is how many of the bits were not asked for yet.
func (b *keyBits) beyond(a *asked) (n int) {
	for i, m := range b {
		n += bits.OnesCount64(m &^ (a.bits[i] | a.known[i]))
	}
	return n
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
