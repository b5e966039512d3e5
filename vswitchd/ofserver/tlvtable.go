package ofserver

import (
	"slices"

	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/vswitchd/openflow"
)

// The TLV table maps options of Geneve to the fields tun_metadata0 and so on. The switch has the
// table among its names. So one bundle changes it, and the next process of the switch has it.
//
//  1. A message that uses an unmapped field is refused with NXFMFC_INVALID_TLV_FIELD.
//  2. A mapping that an entry or group uses cannot be removed (NXTTMFC_INVALID_TLV_DEL).
//  3. The switch checks both again, because a message may be applied long after it came.

// changeTLVs changes the table, whole or not at all.
func (s *Server) changeTLVs(q *openflow.TLVTableMod) error {
	s.changes.Lock()
	defer s.changes.Unlock()
	before := s.options()
	after, err := changedTLVs(before, q)
	if err == nil {
		err = s.checkUnused(before, after)
	}
	if err != nil {
		return err
	}
	names := s.Switch.Names().Clone()
	if err = names.SetTunnelOptions(after); err == nil {
		err = s.Switch.Apply(&flow.Bundle{Names: names, First: s.Switch.First()})
	}
	if err != nil {
		return openflow.Fail(openflow.TLVInUse, "the switch refuses the TLV table: %v", err)
	}
	s.tlvs.Store(&after)
	return nil
}

// options is the table. The list must not be changed.
func (s *Server) options() []flow.TunnelOption { return *s.tlvs.Load() }

// changedTLVs is a table after a change.
func changedTLVs(before []flow.TunnelOption, q *openflow.TLVTableMod) (after []flow.TunnelOption, err error) {
	if q.Command == openflow.TLVClear {
		return nil, nil
	}
	after = slices.Clone(before)
	for _, m := range q.Mappings {
		if m.Index >= openflow.TLVNumbers {
			return nil, openflow.Fail(openflow.TLVBadIndex, "there is no field tun_metadata%d", m.Index)
		}
		if q.Command == openflow.TLVDelete {
			after = slices.DeleteFunc(after, func(have flow.TunnelOption) bool { return uint16(have.Index) == m.Index })
			continue
		}
		if err := checkMapping(after, m); err != nil {
			return nil, err
		}
		after = append(after, flow.TunnelOption{Index: uint8(m.Index), Class: m.Class, Type: m.Type, Size: m.Size})
	}
	slices.SortFunc(after, func(a, b flow.TunnelOption) int { return int(a.Index) - int(b.Index) })
	return after, nil
}

// checkMapping returns an error if a mapping cannot be added to a table.
func checkMapping(table []flow.TunnelOption, m openflow.TLVMapping) error {
	switch {
	case m.Size == 0 || m.Size%4 != 0 || m.Size > openflow.MaxTLVOption:
		return openflow.Fail(openflow.TLVBadSize, "an option of %d bytes, want 4 or %d", m.Size, openflow.MaxTLVOption)
	case m.Index >= openflow.TLVFields:
		return openflow.Fail(openflow.TLVBadIndex, "options may have tun_metadata0 to tun_metadata%d here, not tun_metadata%d", openflow.TLVFields-1, m.Index)
	}
	for _, have := range table {
		switch {
		case uint16(have.Index) == m.Index:
			return openflow.Fail(openflow.TLVAlreadyMapped, "tun_metadata%d is mapped already", m.Index)
		case have.Class == m.Class && have.Type == m.Type:
			return openflow.Fail(openflow.TLVDuplicate, "option %#x, %#x is mapped already", m.Class, m.Type)
		}
	}
	return nil
}

// checkUnused returns an error if a change removes a mapping that entries or groups use.
func (s *Server) checkUnused(before, after []flow.TunnelOption) error {
	gone := slices.DeleteFunc(slices.Clone(before), func(o flow.TunnelOption) bool { return slices.Contains(after, o) })
	if len(gone) == 0 {
		return nil
	}
	used, err := s.optionsInUse()
	if err != nil {
		return err
	}
	for _, o := range gone {
		if used[o.Index] > 0 {
			return openflow.Fail(openflow.TLVInUse, "entries use tun_metadata%d", o.Index)
		}
	}
	return nil
}

// optionsInUse are the fields that the switch's entries and groups use.
func (s *Server) optionsInUse() (used flow.OptionBits, err error) {
	flows, err := listed(s.sw, s.sw.Flows)
	if err != nil {
		return used, err
	}
	for i := range flows {
		used.AddMatch(flows[i].Entry.Match)
		used.AddActions(flows[i].Entry.Actions)
	}
	groups, err := listed(s.sw, s.sw.Groups)
	for _, g := range valuesOf(groups, func(g *telemetry.GroupStats) *flow.Group { return g.Group }) {
		for i := range g.Buckets {
			used.AddActions(g.Buckets[i].Actions)
		}
	}
	return used, err
}

// tlvTable is the answer to a controller that asks for the table.
func (s *Server) tlvTable() *openflow.TLVTable {
	return &openflow.TLVTable{Mappings: valuesOf(s.options(), func(o *flow.TunnelOption) openflow.TLVMapping {
		return openflow.TLVMapping{Class: o.Class, Type: o.Type, Size: o.Size, Index: uint16(o.Index)}
	})}
}

// decode reads a message. A tun_metadata field of the message must be mapped.
func (s *Server) decode(b []byte) (openflow.Message, error) {
	m, err := openflow.Decode(b)
	if err == nil {
		err = s.checkOptions(m.Body)
	}
	return m, err
}

// decodeFlowMod is decode by openflow.DecodeFlowMod.
func (s *Server) decodeFlowMod(b []byte, f *openflow.FlowMod) (is bool, err error) {
	if is, err = openflow.DecodeFlowMod(b, f); is && err == nil {
		err = s.checkEntryOptions(&f.Entry)
	}
	return is, err
}

// checkOptions returns an error if a message uses an unmapped field.
func (s *Server) checkOptions(body openflow.Body) error {
	switch q := body.(type) {
	case *openflow.FlowMod:
		return s.checkEntryOptions(&q.Entry)
	case *openflow.GroupMod:
		for i := range q.Group.Buckets {
			if err := s.checkActionOptions(q.Group.Buckets[i].Actions); err != nil {
				return err
			}
		}
	case *openflow.PacketOut:
		if err := s.checkMatchOptions(&q.Fields); err != nil {
			return err
		}
		return s.checkActionOptions(q.Actions)
	case *openflow.Resume:
		for _, r := range q.Rests {
			if err := s.checkActionOptions(r.Actions); err != nil {
				return err
			}
		}
		return s.checkMatchOptions(&q.Fields)
	case *openflow.Request:
		for i := range q.Monitors {
			if err := s.checkMatchOptions(&q.Monitors[i].Match); err != nil {
				return err
			}
		}
		return s.checkMatchOptions(&q.Flows.Match)
	}
	return nil
}

// checkEntryOptions is checkOptions for an entry. It changes the match as checkMatchOptions does.
func (s *Server) checkEntryOptions(e *flow.Entry) error {
	var used flow.OptionBits
	used.AddMatch(e.Match)
	if used != (flow.OptionBits{}) {
		m := e.Match.Expand()
		if err := s.checkMatchOptions(&m); err != nil {
			return err
		}
		e.Match = m.Mini()
	}
	return s.checkActionOptions(e.Actions)
}

func (s *Server) checkActionOptions(actions []flow.Action) error {
	var used flow.OptionBits
	used.AddActions(actions)
	return s.checkOptionBits(&used, openflow.BadActionSetLength)
}

// checkMatchOptions is checkOptions for a match. It widens a mask of all bits of an option to the
// whole field, because the rest of the field is 0.
func (s *Server) checkMatchOptions(m *flow.Match) error {
	var used flow.OptionBits
	used.AddMatch(m.Mini())
	if used == (flow.OptionBits{}) {
		return nil
	}
	if err := s.checkOptionBits(&used, openflow.BadValue); err != nil {
		return err
	}
	for _, o := range s.options() {
		id := flow.TunMetadata0 + flow.FieldID(o.Index)
		if value, mask := m.Get(id); mask == flow.Ones(8*int(o.Size)) {
			m.AddExact(id, value)
		}
	}
	return nil
}

// checkOptionBits returns NoTLVField if a field is unmapped, and an error of a kind if an option has
// too few bits.
func (s *Server) checkOptionBits(used *flow.OptionBits, kind openflow.ErrorKind) error {
	if *used == (flow.OptionBits{}) {
		return nil
	}
	table := s.options()
	i := used.Lacks(table)
	switch {
	case i < 0:
		return nil
	case slices.ContainsFunc(table, func(o flow.TunnelOption) bool { return int(o.Index) == i }):
		return openflow.Fail(kind, "the option of tun_metadata%d has less than %d bits", i, used[i])
	}
	return openflow.Fail(openflow.NoTLVField, "tun_metadata%d stands for no option", i)
}
