package lookup

import (
	"slices"
	"strings"

	"github.com/antrail/antrail/flow"
)

// Shape names the form of a table's compiled lookup, as dump-tables shows it.
type Shape string

// The shapes. The fields follow ShapeExact and ShapePrefix: "exact in_port,reg1", "prefix
// nw_dst".
const (
	ShapeEmpty       Shape = "empty"
	ShapeSingle      Shape = "single"      // one entry, compared word by word
	ShapeExact       Shape = "exact"       // one mask: one probe of a hash table
	ShapePrefix      Shape = "prefix"      // masks differ in the length of one prefix only
	ShapeSubtables   Shape = "subtables"   // several masks, by highest priority
	ShapeConjunction Shape = "conjunction" // subtables whose clauses complete conjunctions
)

// Shape names the form of a classifier. A table-miss entry, which matches everything, does not
// count.
func (c *Classifier) Shape() Shape {
	sts := slices.DeleteFunc(slices.Clone(c.subtables), func(st *subtable) bool { return len(st.common)+len(st.varying) == 0 })
	switch {
	case c.entries == 0:
		return ShapeEmpty
	case c.clauses > 0:
		return ShapeConjunction
	case c.entries == 1 || len(sts) == 1 && sts[0].rows == 1:
		return ShapeSingle
	case len(sts) == 1:
		return ShapeExact + " " + Shape(fieldsOf(sts[0].hashed()))
	}
	if f := prefixShape(sts); f != nil {
		return ShapePrefix + " " + Shape(f.Name)
	}
	return ShapeSubtables
}

// hashed is the part of the mask in which the entries differ.
func (st *subtable) hashed() *flow.Key {
	m := st.mask
	for _, w := range st.common {
		for i := range 8 {
			m[8*int(w.Index)+i] = 0
		}
	}
	return &m
}

// fieldsOf names the fields of a mask.
func fieldsOf(mask *flow.Key) string {
	var names []string
	for _, id := range flow.Diff(&flow.Key{}, mask) {
		names = append(names, flow.FieldByID(id).Name)
	}
	return strings.Join(names, ",")
}

// prefixShape is the only field in which the masks of all subtables differ; nil if there is none.
func prefixShape(sts []*subtable) *flow.Field {
	for _, f := range prefixPlaces {
		rest := func(st *subtable) flow.Key {
			m := st.mask
			f.Put(&m, flow.Value{}, flow.Ones(128))
			return m
		}
		first := rest(sts[0])
		same := !slices.ContainsFunc(sts, func(st *subtable) bool { return rest(st) != first })
		if same {
			return f
		}
	}
	return nil
}
