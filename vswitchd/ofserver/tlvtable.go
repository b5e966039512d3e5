package ofserver

import (
	"slices"

	"github.com/antrail/antrail/vswitchd/openflow"
)

// The switch keeps the TLV table for controllers that ask for it before anything else. No entry
// can use a tun_metadata field: the codec refuses them with OFPBMC_BAD_FIELD.

// changeTLVs changes the table, whole or not at all.
func (s *Server) changeTLVs(q *openflow.TLVTableMod) error {
	s.changes.Lock()
	defer s.changes.Unlock()
	after := slices.Clone(s.tlvs)
	switch q.Command {
	case openflow.TLVClear:
		after = nil
	case openflow.TLVDelete:
		for _, m := range q.Mappings {
			if m.Index >= openflow.TLVFields {
				return openflow.Fail(openflow.TLVBadIndex, "there is no field tun_metadata%d", m.Index)
			}
			after = slices.DeleteFunc(after, func(have openflow.TLVMapping) bool { return have.Index == m.Index })
		}
	default:
		for _, m := range q.Mappings {
			if err := mayMap(after, m); err != nil {
				return err
			}
			after = append(after, m)
		}
	}
	slices.SortFunc(after, func(a, b openflow.TLVMapping) int { return int(a.Index) - int(b.Index) })
	s.tlvs = after
	return nil
}

// mayMap is the error of a mapping that a table cannot take.
func mayMap(table []openflow.TLVMapping, m openflow.TLVMapping) error {
	switch {
	case m.Index >= openflow.TLVFields:
		return openflow.Fail(openflow.TLVBadIndex, "there is no field tun_metadata%d", m.Index)
	case m.Size == 0 || m.Size%4 != 0 || m.Size > openflow.MaxTLVOption:
		return openflow.Fail(openflow.TLVBadSize, "an option of %d bytes", m.Size)
	}
	space := int(m.Size)
	for _, have := range table {
		space += int(have.Size)
		switch {
		case have.Index == m.Index:
			return openflow.Fail(openflow.TLVAlreadyMapped, "tun_metadata%d is mapped already", m.Index)
		case have.Class == m.Class && have.Type == m.Type:
			return openflow.Fail(openflow.TLVDuplicate, "option %#x, %#x is mapped already", m.Class, m.Type)
		}
	}
	if space > openflow.TLVSpace {
		return openflow.Fail(openflow.TLVTableFull, "options of %d bytes, a table has %d", space, openflow.TLVSpace)
	}
	return nil
}

// tlvTable is the table.
func (s *Server) tlvTable() *openflow.TLVTable {
	s.changes.Lock()
	defer s.changes.Unlock()
	return &openflow.TLVTable{Mappings: s.tlvs}
}
