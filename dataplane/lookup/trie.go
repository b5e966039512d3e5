package lookup

import (
	"encoding/binary"
	"math/bits"

	"github.com/antrail/antrail/flow"
)

// Prefixes: which lengths of prefix of an address (or port) a table's entries have that a
// packet's address matches. A subtable whose length is not among them cannot hold an
// entry for the packet. Whole addresses and ports are prefixes too. They only serve to
// say how many bits of a packet's were enough to know that a subtable has nothing for it
// (examined.go).

// prefixField names a field of which masks take prefixes: addresses, and ports,
// whose ranges are written as several prefixes.
type prefixField uint8

const (
	prefixIPSrc prefixField = iota
	prefixIPDst
	prefixIPv6Src
	prefixIPv6Dst
	prefixTpSrc
	prefixTpDst
	numPrefixFields
)

// prefixPlaces are the fields' rows in the registry. Ports of all protocols
// share a place.
var prefixPlaces = [numPrefixFields]*flow.Field{
	flow.FieldByID(flow.IPSrc), flow.FieldByID(flow.IPDst), flow.FieldByID(flow.IPv6Src),
	flow.FieldByID(flow.IPv6Dst), flow.FieldByID(flow.TCPSrc), flow.FieldByID(flow.TCPDst),
}

// prefix is the field of a subtable's mask that is a prefix, and its length.
type prefix struct {
	field prefixField
	bits  uint8
}

// prefixesOf lists the fields of which a mask takes leading bits and no others:
// some, or all.
func prefixesOf(mask *flow.Key) (all []prefix) {
	for i, f := range prefixPlaces {
		v := leftAligned(f, mask)
		n := bits.LeadingZeros64(^v.hi)
		if n == 64 {
			n += bits.LeadingZeros64(^v.lo)
		}
		if n > 0 && v == v.cut(uint8(n)) {
			all = append(all, prefix{prefixField(i), uint8(n)})
		}
	}
	return all
}

// whole says whether the prefix is all of its field.
func (p prefix) whole() bool { return int(p.bits) == prefixPlaces[p.field].Bits }

// of is the prefix that a match's value has.
func (p prefix) of(value *flow.Key) aligned {
	return leftAligned(prefixPlaces[p.field], value).cut(p.bits)
}

// aligned is a value of up to 128 bits with its first bit uppermost.
type aligned struct{ hi, lo uint64 }

// leftAligned reads a field whose size is that of a port or an address.
func leftAligned(f *flow.Field, k *flow.Key) aligned {
	b := k[f.Off:]
	switch f.Size {
	case 2:
		return aligned{hi: uint64(binary.BigEndian.Uint16(b)) << 48}
	case 4:
		return aligned{hi: uint64(binary.BigEndian.Uint32(b)) << 32}
	}
	return aligned{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])}
}

// cut keeps the first n bits.
func (a aligned) cut(n uint8) aligned {
	if n >= 64 {
		return aligned{a.hi, a.lo &^ (^uint64(0) >> (n - 64))}
	}
	return aligned{hi: a.hi &^ (^uint64(0) >> n)}
}

// bit is the bit at a place, 0 for the first.
func (a aligned) bit(n uint8) uint64 {
	if n >= 64 {
		return a.lo >> (127 - n) & 1
	}
	return a.hi >> (63 - n) & 1
}

// common is how many first bits two values share, at most max.
func (a aligned) common(b aligned, limit uint8) uint8 {
	n := bits.LeadingZeros64(a.hi ^ b.hi)
	if n == 64 {
		n += bits.LeadingZeros64(a.lo ^ b.lo)
	}
	return min(uint8(n), limit)
}

// trie is a node of a binary tree of prefixes in which every node without
// entries of its own has two children. Nodes of another edit are copied before
// they change.
type trie struct {
	edit     *edit
	value    aligned
	bits     uint8
	entries  int // that have exactly this prefix
	children [2]*trie
}

func (t *trie) own(ed *edit) *trie {
	if t.edit == ed {
		return t
	}
	n := *t
	n.edit = ed
	return &n
}

// insert is the tree with one more entry of a prefix.
func (t *trie) insert(value aligned, length uint8, ed *edit) *trie {
	if t == nil {
		return &trie{edit: ed, value: value, bits: length, entries: 1}
	}
	shared := t.value.common(value, min(t.bits, length))
	if shared < t.bits {
		fork := &trie{edit: ed, value: value.cut(shared), bits: shared}
		fork.children[t.value.bit(shared)] = t
		t = fork
	} else {
		t = t.own(ed)
	}
	if length == t.bits {
		t.entries++
		return t
	}
	child := &t.children[value.bit(t.bits)]
	*child = (*child).insert(value, length, ed)
	return t
}

// remove is the tree with one entry less of a prefix that is there.
func (t *trie) remove(value aligned, length uint8, ed *edit) *trie {
	t = t.own(ed)
	if length == t.bits {
		t.entries--
	} else {
		child := &t.children[value.bit(t.bits)]
		*child = (*child).remove(value, length, ed)
	}
	switch a, b := t.children[0], t.children[1]; {
	case t.entries > 0 || a != nil && b != nil:
		return t
	case a != nil:
		return a
	default:
		return b
	}
}

// lacks says whether the tree has no prefix of a length that a value begins with. It also
// returns how many of the value's first bits show it.
func (t *trie) lacks(value aligned, length uint8) (n uint8, ok bool) {
	for above := uint8(0); ; {
		switch {
		case t == nil || t.bits > length:
			return above, true
		case value.common(t.value, t.bits) < t.bits:
			return value.common(t.value, t.bits) + 1, true
		case t.bits == length:
			return length, t.entries == 0
		}
		above = t.bits + 1
		t = t.children[value.bit(t.bits)]
	}
}

// prefixLengths is, field by field, a set of prefix lengths; it is filled as it
// is asked.
type prefixLengths struct {
	known uint8 // one bit for each field
	sets  [numPrefixFields]lengthSet
}

// lengthSet has bit n set for length n, 0 to 127.
type lengthSet [2]uint64

func (s *lengthSet) has(n uint8) bool { return s[n/64]>>(n%64)&1 != 0 }

// of is the lengths of the prefixes in a field's tree that the key has.
func (l *prefixLengths) of(field prefixField, t *trie, k *flow.Key) *lengthSet {
	s := &l.sets[field]
	if l.known>>field&1 != 0 {
		return s
	}
	l.known |= 1 << field
	*s = lengthSet{}
	v := leftAligned(prefixPlaces[field], k)
	for t != nil && v.common(t.value, t.bits) == t.bits {
		if t.entries > 0 {
			s[t.bits/64] |= 1 << (t.bits % 64)
		}
		t = t.children[v.bit(t.bits)]
	}
	return s
}
