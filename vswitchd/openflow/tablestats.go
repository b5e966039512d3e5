package openflow

import "github.com/antrail/antrail/flow"

// Tables is the number of tables: 0 to 253, as in Open vSwitch.
const Tables = 254

// mostEntries is the largest number of entries of a table that Open vSwitch reports.
const mostEntries = 1000000

// TableStats are a table's counters: a part of StatsTable.
type TableStats struct {
	ID            uint8
	Name          string
	Active        uint32
	Lookups, Hits uint64
}

// part implements Part.
func (t *TableStats) part(w *writer, v Version, _ bool) error {
	w.u8(t.ID)
	w.zeros(3)
	if v == V10 {
		w.name(t.Name, 32)
		w.u32(anyAll)
		w.u32(mostEntries)
	}
	w.u32(t.Active)
	w.u64(t.Lookups)
	w.u64(t.Hits)
	return nil
}

// TableFeatures is what a table can do: a part of StatsTableFeatures.
type TableFeatures struct {
	ID   uint8
	Name string
}

// Properties of a table's features. The property of the table-miss entry has the next number.
const (
	featInstructions  = 0
	featNextTables    = 2
	featWriteActions  = 4
	featApplyActions  = 6
	featMatch         = 8
	featWildcards     = 10
	featWriteSetField = 12
	featApplySetField = 14
)

// part implements Part.
func (t *TableFeatures) part(w *writer, v Version, _ bool) error {
	start := w.len()
	w.u16(0)
	w.u8(t.ID)
	w.zeros(5)
	w.name(t.Name, 32)
	w.zeros(16) // metadata cannot be written by an instruction
	w.u32(0)
	w.u32(mostEntries)
	for miss := range uint16(2) {
		w.property(featInstructions+miss, func() { w.instructionIDs(v) })
		w.property(featNextTables+miss, func() {
			for id := int(t.ID) + 1; id < Tables; id++ {
				w.u8(uint8(id))
			}
		})
		w.property(featWriteActions+miss, func() {})
		w.property(featApplyActions+miss, func() { w.actionIDs(v) })
		w.property(featWriteSetField+miss, func() {})
		w.property(featApplySetField+miss, func() { w.fieldIDs(v, func(f *flow.Field) bool { return !f.ReadOnly }) })
	}
	w.property(featMatch, func() { w.fieldIDs(v, func(f *flow.Field) bool { return true }) })
	w.property(featWildcards, func() { w.fieldIDs(v, func(f *flow.Field) bool { return true }) })
	w.set16(start, w.len()-start)
	return nil
}

// instructionIDs writes the instructions that entries may have.
func (w *writer) instructionIDs(v Version) {
	all := []uint16{instGoto, instApply}
	if v < V15 {
		all = append(all, instMeter)
	}
	for _, id := range all {
		w.u16(id)
		w.u16(4)
	}
}

// actionIDs writes OpenFlow's own actions that entries may have.
func (w *writer) actionIDs(v Version) {
	all := []uint16{actOutput, actPushVLAN, actPopVLAN, actGroup, actSetTTL, actDecTTL, actSetField}
	if v >= V15 {
		all = append(all, actCopyField, actMeter)
	}
	for _, id := range all {
		w.u16(id)
		w.u16(4)
	}
}

// fieldIDs writes the headers of fields.
func (w *writer) fieldIDs(v Version, want func(*flow.Field) bool) {
	for id := flow.Reg0; id < flow.NumFields; id++ {
		h := headersOf[id].in(v)
		if f := flow.FieldByID(id); h.size != 0 && want(f) {
			w.u32(h.u32())
		}
	}
}

// TableDesc is a table's configuration: a part of StatsTableDesc.
type TableDesc struct{ ID uint8 }

// The property of a table's description about eviction, which is off, and its criteria (OpenFlow
// 1.4, 7.3.4.1): other, importance and lifetime. Open vSwitch reports all three.
const (
	descEviction = 2
	evictByAll   = 1 | 2 | 4
)

// part implements Part.
func (t *TableDesc) part(w *writer, _ Version, _ bool) error {
	w.u16(16)
	w.u8(t.ID)
	w.u8(0)
	w.u32(0)
	w.property(descEviction, func() { w.u32(evictByAll) })
	return nil
}
