package lookup

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/antrail/antrail/flow"
)

// Prefixes: the lengths of a table's address (or port) prefixes that match a packet. A subtable
// of any other length cannot hold an entry for the packet. Whole addresses and ports are prefixes
// too. They only tell how many bits of a packet prove that a subtable has no row for it
// (examined.go).

// prefixField names a field whose masks may be prefixes: addresses, and ports, whose ranges are
// written as several prefixes.
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

// prefixPlaces are the fields in the registry. Ports of all protocols share a place.
var prefixPlaces = [numPrefixFields]*flow.Field{
	flow.FieldByID(flow.IPSrc), flow.FieldByID(flow.IPDst), flow.FieldByID(flow.IPv6Src),
	flow.FieldByID(flow.IPv6Dst), flow.FieldByID(flow.TCPSrc), flow.FieldByID(flow.TCPDst),
}

// prefix is a field in which a subtable's mask is a prefix, and the prefix length.
type prefix struct {
	field prefixField
	bits  uint8
}

// prefixesOf lists the fields in which a mask has only leading bits: some, or all.
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

// of is the prefix of a match's value.
func (p prefix) of(value *flow.Key) aligned {
	return leftAligned(prefixPlaces[p.field], value).cut(p.bits)
}

// aligned is a value of up to 128 bits with its first bit uppermost.
type aligned struct{ hi, lo uint64 }

// leftAligned reads a field of the size of a port or an address.
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

// bit is the bit at index n; 0 is the first.
func (a aligned) bit(n uint8) uint64 {
	if n >= 64 {
		return a.lo >> (127 - n) & 1
	}
	return a.hi >> (63 - n) & 1
}

// common is the number of first bits that two values share, at most limit.
func (a aligned) common(b aligned, limit uint8) uint8 {
	n := bits.LeadingZeros64(a.hi ^ b.hi)
	if n == 64 {
		n += bits.LeadingZeros64(a.lo ^ b.lo)
	}
	return min(uint8(n), limit)
}

// trie is a binary tree of prefixes. Every node without entries of its own has two children.
// Nodes lie in one slice. A node names its children by index, so that the garbage collector finds
// no pointers. Index 0 stands for "no node".
//
//  1. An edit appends nodes, and never writes a node below shared, because lookups read those
//     through copies of the trie with a shorter slice.
//  2. Only the newest copy is edited, because an edit writes behind the slices of the others. The
//     copy of a failed edit is dropped.
type trie struct {
	nodes  []trieNode
	root   uint32
	shared uint32 // the nodes below this index belong to other copies too
	gone   int    // nodes that are no longer in the tree
}

type trieNode struct {
	value    aligned
	children [2]uint32
	entries  uint32 // with exactly this prefix
	bits     uint8
}

// editable returns the copy for an edit. If most nodes are gone, it compacts them.
func (t *trie) editable() trie {
	n := *t
	if n.gone > len(n.nodes)/2 {
		n = trie{}
		n.root = n.copyFrom(t, t.root)
	}
	n.shared = uint32(len(n.nodes))
	return n
}

// copyFrom adds another trie's subtree at an index, and returns its new index.
func (t *trie) copyFrom(other *trie, at uint32) uint32 {
	if at == 0 {
		return 0
	}
	n := other.nodes[at]
	for i, child := range n.children {
		n.children[i] = t.copyFrom(other, child)
	}
	return t.add(n)
}

// add appends a node and returns its index.
func (t *trie) add(n trieNode) uint32 {
	if t.nodes == nil {
		t.nodes = make([]trieNode, 1, 8)
	}
	if len(t.nodes) == cap(t.nodes) { // append would grow a large slice by a quarter, and so copy it four times as often
		t.nodes = slices.Grow(t.nodes, len(t.nodes))
	}
	t.nodes = append(t.nodes, n)
	return uint32(len(t.nodes) - 1)
}

// own returns the index of a node that the edit may write: at, or that of a copy.
func (t *trie) own(at uint32) uint32 {
	if at >= t.shared {
		return at
	}
	t.gone++
	return t.add(t.nodes[at])
}

// insert adds one entry of a prefix.
func (t *trie) insert(value aligned, length uint8) { t.root = t.insertBelow(t.root, value, length) }

// insertBelow is insert in the subtree at an index. It returns the subtree's new index.
func (t *trie) insertBelow(at uint32, value aligned, length uint8) uint32 {
	if at == 0 {
		return t.add(trieNode{value: value, bits: length, entries: 1})
	}
	n := &t.nodes[at]
	if shared := n.value.common(value, min(n.bits, length)); shared < n.bits {
		fork := trieNode{value: value.cut(shared), bits: shared}
		fork.children[n.value.bit(shared)] = at
		at = t.add(fork)
	} else {
		at = t.own(at)
	}
	n = &t.nodes[at]
	if length == n.bits {
		n.entries++
		return at
	}
	side := value.bit(n.bits)
	child := t.insertBelow(n.children[side], value, length)
	t.nodes[at].children[side] = child // insertBelow may have moved the slice
	return at
}

// remove removes one entry of a present prefix.
func (t *trie) remove(value aligned, length uint8) { t.root = t.removeBelow(t.root, value, length) }

// removeBelow is remove in the subtree at an index. It returns the subtree's new index.
func (t *trie) removeBelow(at uint32, value aligned, length uint8) uint32 {
	at = t.own(at)
	if n := &t.nodes[at]; length == n.bits {
		n.entries--
	} else {
		side := value.bit(n.bits)
		child := t.removeBelow(n.children[side], value, length)
		t.nodes[at].children[side] = child
	}
	n := &t.nodes[at]
	if n.entries > 0 || n.children[0] != 0 && n.children[1] != 0 {
		return at
	}
	t.gone++
	return n.children[0] + n.children[1] // at most one is not 0
}

// lacks says whether the tree has no prefix of a length with which a value begins. n is how many
// of the value's first bits prove it.
func (t *trie) lacks(value aligned, length uint8) (n uint8, ok bool) {
	above := uint8(0)
	for at := t.root; at != 0; {
		node := &t.nodes[at]
		switch common := value.common(node.value, node.bits); {
		case node.bits > length:
			return above, true
		case common < node.bits:
			return common + 1, true
		case node.bits == length:
			return length, node.entries == 0
		}
		above = node.bits + 1
		at = node.children[value.bit(node.bits)]
	}
	return above, true
}

// prefixLengths is a set of prefix lengths for each field. A field's set is computed when it is
// first needed.
type prefixLengths struct {
	known uint8 // one bit for each field
	sets  [numPrefixFields]lengthSet
}

// lengthSet has bit n set for length n, 0 to 127.
type lengthSet [2]uint64

func (s *lengthSet) has(n uint8) bool { return s[n/64]>>(n%64)&1 != 0 }

// of is the lengths of the prefixes in a field's trie that match the key.
func (l *prefixLengths) of(field prefixField, t *trie, k *flow.Key) *lengthSet {
	s := &l.sets[field]
	if l.known>>field&1 != 0 {
		return s
	}
	l.known |= 1 << field
	*s = lengthSet{}
	v := leftAligned(prefixPlaces[field], k)
	for at := t.root; at != 0; {
		n := &t.nodes[at]
		if v.common(n.value, n.bits) < n.bits {
			break
		}
		if n.entries > 0 {
			s[n.bits/64] |= 1 << (n.bits % 64)
		}
		at = n.children[v.bit(n.bits)]
	}
	return s
}
