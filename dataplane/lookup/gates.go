package lookup

import (
	"math/bits"

	"github.com/antrail/antrail/flow"
)

// gates are the probes of a lookup, by the prefix lengths that match a key. A lookup goes from
// one of these probes to the next, and never visits the probes of other lengths.
type gates struct {
	always placeSet // probes that have no gate
	fields []fieldGates
}

// fieldGates are the probes that depend on the prefix lengths of a field.
type fieldGates struct {
	field prefixField
	of    [128]placeSet // by length; nil if no probe has the length
}

// placeSet is a bit set of indexes into Classifier.probes.
type placeSet []uint64

func newPlaceSet(n int) placeSet { return make(placeSet, (n+63)/64) }

func (s placeSet) add(i int) { s[i/64] |= 1 << (i % 64) }

// next is the first element from i on, or one past the set's room. The set must have room for i.
func (s placeSet) next(i int) int {
	w := i / 64
	rest := s[w] >> (i % 64) << (i % 64)
	for rest == 0 {
		if w++; w == len(s) {
			return 64 * w
		}
		rest = s[w]
	}
	return 64*w + bits.TrailingZeros64(rest)
}

// gatesOf are the gates of a classifier's probes.
func gatesOf(probes []probe) gates {
	g := gates{always: newPlaceSet(len(probes))}
	for i := range probes {
		p := &probes[i]
		if !p.gated {
			g.always.add(i)
			continue
		}
		of := &g.at(p.gate.field).of[p.gate.bits]
		if *of == nil {
			*of = newPlaceSet(len(probes))
		}
		of.add(i)
	}
	return g
}

// at is the gates of a field. It adds them if there are none.
func (g *gates) at(field prefixField) *fieldGates {
	for i := range g.fields {
		if g.fields[i].field == field {
			return &g.fields[i]
		}
	}
	g.fields = append(g.fields, fieldGates{field: field})
	return &g.fields[len(g.fields)-1]
}

// open appends to s, which is empty, the set of the probes for a key.
func (g *gates) open(s placeSet, c *Classifier, k *flow.Key, l *prefixLengths) placeSet {
	s = append(s, g.always...)
	for i := range g.fields {
		f := &g.fields[i]
		for w, lengths := range l.of(f.field, &c.tries[f.field], k) {
			for ; lengths != 0; lengths &= lengths - 1 {
				for j, places := range f.of[64*w+bits.TrailingZeros64(lengths)] {
					s[j] |= places
				}
			}
		}
	}
	return s
}
