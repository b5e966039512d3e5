package flowcache

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/antrail/antrail/dataplane/lookup"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
)

// shape is a mask of megaflows that begin in one table.
type shape struct {
	mask      []lookup.WordMask
	whole     lookup.KeyBits
	seed      uint64        // of its hashes
	megaflows int           // megaflows that are not void
	passed    uint64        // packets that replayed one; older packets count less
	table     uint8         // where they begin
	served    atomic.Uint64 // packets that replayed one, for other goroutines
}

// shapeFor returns a shape of a table with all examined bits: the one with this mask, or a new
// one. If the table has too many shapes, it widens the shape that matched least. It returns nil
// if the mask would have too many words.
func (s *Megaflows) shapeFor(table uint8, examined *lookup.KeyBits) *shape {
	all := s.shapes[table]
	for _, o := range all {
		if o.whole == *examined {
			return o
		}
	}
	var least *shape
	if len(all) == maxShapes {
		least = slices.MinFunc(all, func(x, y *shape) int { return cmp.Compare(x.passed, y.passed) })
		if !examined.Add(&least.whole) {
			return least
		}
	}
	mask := examined.List()
	if len(mask) > megaflowWords {
		return nil
	}
	if least != nil {
		s.dropShape(table, least)
		s.Count[telemetry.MegaflowWidened]++
	}
	s.drawn++
	s.reshaped = true
	o := &shape{mask: mask, whole: *examined, seed: lookup.Mix(lookup.Seed, s.drawn), table: table}
	s.shapes[table] = append(s.shapes[table], o)
	return o
}

// dropShape voids a shape's megaflows.
func (s *Megaflows) dropShape(table uint8, o *shape) {
	for _, r := range s.list {
		if r.shape == o && !r.void {
			r.invalidate()
			s.Count[telemetry.MegaflowVoid]++
		}
	}
	s.shapes[table] = slices.DeleteFunc(s.shapes[table], func(x *shape) bool { return x == o })
}

// halfLife is the number of batches after which a match counts half.
const halfLife = 1 << 14

// ageShapes halves the counts of earlier matches.
func (s *Megaflows) ageShapes() {
	for _, all := range s.shapes {
		for _, o := range all {
			o.passed /= 2
		}
	}
}

// AddShapes adds the masks to a list by table, and merges equal ones. Any goroutine may call it.
func (t *MegaflowTotals) AddShapes(all []telemetry.CacheShape) []telemetry.CacheShape {
	list := t.list.Load()
	if list == nil {
		return all
	}
	for _, o := range *list {
		c := telemetry.CacheShape{Table: o.table, Fields: bitsText(&o.whole), Packets: o.served.Load()}
		same := func(have telemetry.CacheShape) bool { return have.Table == c.Table && have.Fields == c.Fields }
		if i := slices.IndexFunc(all, same); i >= 0 {
			all[i].Packets += c.Packets
		} else {
			all = append(all, c)
		}
	}
	return all
}

// bitsText names the fields with bits, and adds a mask if not all bits are set.
func bitsText(b *lookup.KeyBits) string {
	var k flow.Key
	for i, w := range b {
		k.SetWord(i, w, w)
	}
	var fields []string
	for _, id := range flow.Diff(&flow.Key{}, &k) {
		f := flow.FieldByID(id)
		text := f.Name
		switch v := f.Get(&k); {
		case v == flow.Ones(f.Bits):
		case id == flow.IPSrc || id == flow.IPDst || id == flow.EthSrc || id == flow.EthDst:
			_, mask, _ := strings.Cut(flow.FieldText(id, &k, nil), "=")
			text += "/" + mask
		case v.Hi != 0:
			text += fmt.Sprintf("/0x%x%016x", v.Hi, v.Lo)
		default:
			text += fmt.Sprintf("/%#x", v.Lo)
		}
		fields = append(fields, text)
	}
	return strings.Join(fields, ",")
}
