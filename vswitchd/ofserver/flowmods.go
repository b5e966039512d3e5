package ofserver

import (
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/vswitchd/openflow"
)

// lastTable is the largest number of a table that controllers use.
const lastTable = openflow.Tables - 1

// flowMod puts a flow mod on the stage, to which it belongs from then on. If tableID is set, the
// upper byte of its command is a table, in OpenFlow 1.0. After an error the stage is unchanged.
func (st *stage) flowMod(m *openflow.FlowMod, tableID bool) error {
	switch {
	case tableID && m.Entry.Table == openflow.AllTables:
		m.Entry.Table, m.TableByte = m.TableByte, 0
	case m.TableByte != 0:
		return openflow.Fail(openflow.FlowBadCommand, "command %#x: NXT_FLOW_MOD_TABLE_ID is not set", uint16(m.TableByte)<<8|uint16(m.Command))
	}
	if m.Command == openflow.FlowAdd && m.Entry.Table == openflow.AllTables {
		m.Entry.Table = 0
	}
	if t := m.Entry.Table; t > lastTable && t != openflow.AllTables {
		return openflow.Fail(openflow.BadTableID, "there is no table %d", t)
	}
	if m.Command < openflow.FlowDelete {
		if err := st.checkReferences(m.Entry.Actions); err != nil {
			return err
		}
	}
	switch m.Command {
	case openflow.FlowAdd:
		return st.addFlow(m)
	case openflow.FlowModify, openflow.FlowModifyStrict:
		return st.modifyFlows(m)
	}
	return st.deleteFlows(m)
}

// addFlow installs an entry.
func (st *stage) addFlow(m *openflow.FlowMod) error {
	if m.CheckOverlap {
		if err := st.checkOverlap(&m.Entry); err != nil {
			return err
		}
	}
	st.putEntry(&m.Entry, m.ResetCounts)
	st.recordChange(openflow.EventAdded, &m.Entry, nil)
	return nil
}

// checkOverlap returns an error if a packet could match both an entry and another one of the same
// priority.
func (st *stage) checkOverlap(e *flow.Entry) error {
	if err := st.loadFlows(); err != nil {
		return err
	}
	m := e.Match.Expand()
	for _, p := range st.slots {
		if p.now == nil || p.Table != e.Table || p.Priority != e.Priority || p.Match == e.Match {
			continue
		}
		if other := p.Match.Expand(); overlap(&other, &m) {
			return openflow.Fail(openflow.FlowOverlap, "%s overlaps %s", e.String(), p.now.String())
		}
	}
	return nil
}

// overlap reports whether a packet may match both.
func overlap(a, b *flow.Match) bool {
	for i := range a.Mask {
		if (a.Value[i]^b.Value[i])&a.Mask[i]&b.Mask[i] != 0 {
			return false
		}
	}
	return true
}

// chosenSlots are the slots of the entries that a modification or deletion selects.
func (st *stage) chosenSlots(m *openflow.FlowMod) (all []*slot, err error) {
	if err := st.loadFlows(); err != nil {
		return nil, err
	}
	wider := m.Entry.Match.Expand()
	strict := m.Command == openflow.FlowModifyStrict || m.Command == openflow.FlowDeleteStrict
	for _, p := range st.slots {
		e := p.now
		switch {
		case e == nil, m.Entry.Table != openflow.AllTables && p.Table != m.Entry.Table, (e.Cookie^m.Cookie)&m.CookieMask != 0:
		case strict && (p.Priority != m.Entry.Priority || p.Match != m.Entry.Match):
		case !strict && !p.Match.Within(&wider):
		default:
			all = append(all, p)
		}
	}
	return all, nil
}

// modifyFlows replaces the actions of entries. They keep timeouts and counters, and the cookie
// unless the message sets one. In OpenFlow 1.0 an entry is added if none is selected.
func (st *stage) modifyFlows(m *openflow.FlowMod) error {
	all, err := st.chosenSlots(m)
	if err != nil {
		return err
	}
	if len(all) == 0 && m.AddsIfNone() {
		if m.Entry.Table == openflow.AllTables {
			m.Entry.Table = 0
		}
		return st.addFlow(m)
	}
	for _, p := range all {
		e := *p.now
		e.Actions = m.Entry.Actions
		if m.SetCookie {
			e.Cookie = m.Entry.Cookie
		}
		if err := e.Check(); err != nil {
			return openflow.Fail(openflow.MatchInconsistent, "%s: %v", e.String(), err)
		}
	}
	for _, p := range all {
		e := *p.now
		e.Actions = m.Entry.Actions
		if m.SetCookie {
			e.Cookie = m.Entry.Cookie
		}
		old := p.now
		st.putEntry(&e, m.ResetCounts)
		if st.watched && (e.Cookie != old.Cookie || e.String() != old.String()) {
			st.recordChange(openflow.EventModified, &e, old)
		}
	}
	return nil
}

// deleteFlows removes entries.
func (st *stage) deleteFlows(m *openflow.FlowMod) error {
	all, err := st.chosenSlots(m)
	if err != nil {
		return err
	}
	for _, p := range all {
		if sendsTo(p.now.Actions, m.OutPort, m.OutGroup) {
			st.removeEntry(p, openflow.RemovedDelete)
		}
	}
	return nil
}

// sendsTo reports whether actions output to a port and to a group. flow.PortNone and AnyGroup match
// all actions.
func sendsTo(actions []flow.Action, port, group uint32) bool {
	return (port == flow.PortNone || anyAction(actions, func(a flow.Action) bool { return portOf(a) == port })) &&
		(group == openflow.AnyGroup || anyAction(actions, func(a flow.Action) bool { return a == flow.Action(flow.GroupAction{ID: group}) }))
}

// portOf is the port to which an action outputs; flow.PortNone for none.
func portOf(a flow.Action) uint32 {
	switch a := a.(type) {
	case flow.Output:
		return a.Port
	case flow.OutputInPort:
		return flow.PortInPort
	case flow.Normal:
		return flow.PortNormal
	case flow.Flood:
		return flow.PortFlood
	case flow.All:
		return flow.PortAll
	case flow.Controller:
		return flow.PortController
	}
	return flow.PortNone
}

// anyAction reports whether an action, or one in a clone(), is wanted.
func anyAction(actions []flow.Action, wanted func(flow.Action) bool) bool {
	for _, a := range actions {
		if _, learns := a.(*flow.Learn); learns {
			continue
		}
		if c, ok := a.(flow.Clone); ok && anyAction(c.Actions, wanted) || !ok && wanted(a) {
			return true
		}
	}
	return false
}

// checkReferences returns an error if actions name a missing group or meter, or an ALG.
func (st *stage) checkReferences(actions []flow.Action) (err error) {
	anyAction(actions, func(a flow.Action) bool {
		switch a := a.(type) {
		case flow.GroupAction:
			err = st.checkGroup(a.ID)
		case flow.MeterAction:
			err = st.checkMeter(a.ID)
		case flow.Controller:
			if a.MeterID != 0 {
				err = st.checkMeter(a.MeterID)
			}
		case *flow.CT:
			if a.ALG != "" {
				err = openflow.Fail(openflow.BadActionArgument, "ct(alg=%s) is not supported", a.ALG)
			}
		}
		return err != nil
	})
	return err
}

func (st *stage) checkGroup(id uint32) error {
	all, err := st.loadGroups()
	if err == nil && all[id] == nil {
		err = openflow.Fail(openflow.BadOutGroup, "there is no group %d", id)
	}
	return err
}

func (st *stage) checkMeter(id uint32) error {
	all, err := st.loadMeters()
	if err == nil && all[id] == nil {
		err = openflow.Fail(openflow.InvalidMeter, "there is no meter %d", id)
	}
	return err
}
