package lookup

import (
	"math/bits"

	"github.com/antrail/antrail/flow"
)

// KeyBits is a mask of a key, word by word.
type KeyBits [flow.KeyWords]uint64

// Examined has the bits of a key that lookups depend on. Keys that agree in these bits get the
// same entries. Each lookup adds the bits that it reads.
type Examined struct {
	Bits  KeyBits
	Known KeyBits // bits that are equal in all keys in question; lookups do not add them
}

// find adds the bits on which the result of a subtable's search depends.
func (a *Examined) find(c *Classifier, st *subtable, found bool, k *flow.Key) {
	if !found {
		a.examineMiss(c, st, k)
		return
	}
	for _, w := range st.common {
		a.Bits[w.Index] |= w.Mask &^ a.Known[w.Index]
	}
	a.varying(st)
}

func (a *Examined) varying(st *subtable) {
	for _, w := range st.varying {
		a.Bits[w.Index] |= w.Mask &^ a.Known[w.Index]
	}
}

// examineMiss adds bits that prove that a subtable has no row for a key, unless the examined bits
// already prove it. It tries, in this order:
//
//  1. a byte in which the key differs from all rows;
//  2. the first bytes of an address or port with which no entry of the table begins;
//  3. all bits in which rows differ from each other.
//
// So in a table that names a few ports, all other ports share a megaflow.
func (a *Examined) examineMiss(c *Classifier, st *subtable, k *flow.Key) {
	if a.tells(st, k) || a.differs(st, k, false) || a.differs(st, k, true) {
		return
	}
	best, fewest := KeyBits{}, 0
	for _, p := range st.prefixes {
		f := prefixPlaces[p.field]
		n, ok := c.values[p.field].lacks(leftAligned(f, k), p.bits)
		if !ok {
			continue
		}
		var b KeyBits
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

// tells reports whether the examined bits distinguish a key from all rows.
func (a *Examined) tells(st *subtable, k *flow.Key) bool {
	for _, w := range st.common {
		if (k.Word(int(w.Index))^w.value)&w.Mask&(a.Bits[w.Index]|a.Known[w.Index]) != 0 {
			return true
		}
	}
	return false
}

// differs adds the first byte in which a key differs from all rows, if there is one. many
// selects addresses and ports, which have many values, or all other fields.
func (a *Examined) differs(st *subtable, k *flow.Key, many bool) bool {
	for _, w := range st.common {
		different := (k.Word(int(w.Index)) ^ w.value) & w.Mask
		if different == 0 || manyValues[w.Index] != many {
			continue
		}
		at := bits.TrailingZeros64(different) &^ 7 // the key's first byte is the word's lowest
		a.Bits[w.Index] |= w.Mask & (0xff << at) &^ a.Known[w.Index]
		return true
	}
	return false
}

// manyValues has the words with addresses or ports.
var manyValues = func() (many [flow.KeyWords]bool) {
	for _, f := range prefixPlaces {
		for i, m := range BitsOf(f.ID, flow.Ones(f.Bits)) {
			many[i] = many[i] || m != 0
		}
	}
	return many
}()

// add adds bits to the examined ones.
func (a *Examined) add(b *KeyBits) {
	for i, m := range b {
		a.Bits[i] |= m &^ a.Known[i]
	}
}

// addByte adds the byte at an offset in the key.
func (b *KeyBits) addByte(at int) { b[at/8] |= 0xff << (at % 8 * 8) }

// beyond is the number of bits that are not examined yet.
func (b *KeyBits) beyond(a *Examined) (n int) {
	for i, m := range b {
		n += bits.OnesCount64(m &^ (a.Bits[i] | a.Known[i]))
	}
	return n
}

// BitsOf is the key bits of some bits of a field.
func BitsOf(id flow.FieldID, mask flow.Value) (b KeyBits) {
	var k flow.Key
	flow.FieldByID(id).Put(&k, mask, mask)
	for i := range b {
		b[i] = k.Word(i)
	}
	return b
}

// Add adds others to b. more says that b had bits that others lacks.
func (b *KeyBits) Add(others *KeyBits) (more bool) {
	for i, m := range others {
		more = more || b[i]&^m != 0
		b[i] |= m
	}
	return more
}

// List is the words that are not 0.
func (b *KeyBits) List() (all []WordMask) {
	for i, m := range b {
		if m != 0 {
			all = append(all, WordMask{uint8(i), m})
		}
	}
	return all
}
