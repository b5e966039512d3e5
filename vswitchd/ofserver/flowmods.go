package ofserver

import (
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/vswitchd/openflow"
)

// lastTable is the largest number of a table that controllers use.
const lastTable = openflow.Tables - 1

// flowMod puts a flow mod on the stage, which has it from then on. tableID says that the upper
// byte of its command is a table, in OpenFlow 1.0. After an error the stage is as before.
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
		if err := st.references(m.Entry.Actions); err != nil {
			return err
		}
	}
	switch m.Command {
	case openflow.FlowAdd:
		return st.add(m)
	case openflow.FlowModify, openflow.FlowModifyStrict:
		return st.modify(m)
	}
	return st.delete(m)
}

// add installs an entry.
func (st *stage) add(m *openflow.FlowMod) error {
	if m.CheckOverlap {
		if err := st.overlaps(&m.Entry); err != nil {
			return err
		}
	}
	st.put(&m.Entry, m.ResetCounts)
	st.tell(openflow.EventAdded, &m.Entry, nil)
	return nil
}

// overlaps is the error of an entry that some packet would match as well as another entry of
// the same priority.
func (st *stage) overlaps(e *flow.Entry) error {
	if err := st.load(); err != nil {
		return err
	}
	m := e.Match.Expand()
	for _, p := range st.slots {
		if p.now == nil || p.table != e.Table || p.priority != e.Priority || p.match == e.Match {
			continue
		}
		if other := p.match.Expand(); overlap(&other, &m) {
			return openflow.Fail(openflow.FlowOverlap, "%s overlaps %s", e.String(), p.now.String())
		}
	}
	return nil
}

// overlap reports whether some packet may match both.
func overlap(a, b *flow.Match) bool {
	for i := range a.Mask {
		if (a.Value[i]^b.Value[i])&a.Mask[i]&b.Mask[i] != 0 {
			return false
		}
	}
	return true
}

// chosen are the slots that a modification or deletion is about.
func (st *stage) chosen(m *openflow.FlowMod) (all []*slot, err error) {
	if err := st.load(); err != nil {
		return nil, err
	}
	wider := m.Entry.Match.Expand()
	strict := m.Command == openflow.FlowModifyStrict || m.Command == openflow.FlowDeleteStrict
	for _, p := range st.slots {
		e := p.now
		switch {
		case e == nil, m.Entry.Table != openflow.AllTables && p.table != m.Entry.Table, (e.Cookie^m.Cookie)&m.CookieMask != 0:
		case strict && (p.priority != m.Entry.Priority || p.match != m.Entry.Match):
		case !strict && !p.match.Within(&wider):
		default:
			all = append(all, p)
		}
	}
	return all, nil
}

// modify gives entries other actions. They keep cookie, timeouts and counters. In OpenFlow 1.0
// an entry is added if there is none.
func (st *stage) modify(m *openflow.FlowMod) error {
	all, err := st.chosen(m)
	if err != nil {
		return err
	}
	if len(all) == 0 && m.AddsIfNone() {
		if m.Entry.Table == openflow.AllTables {
			m.Entry.Table = 0
		}
		return st.add(m)
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
		st.put(&e, m.ResetCounts)
		if st.watched && (e.Cookie != old.Cookie || e.String() != old.String()) {
			st.tell(openflow.EventModified, &e, old)
		}
	}
	return nil
}

// delete removes entries.
func (st *stage) delete(m *openflow.FlowMod) error {
	all, err := st.chosen(m)
	if err != nil {
		return err
	}
	for _, p := range all {
		if sendsTo(p.now.Actions, m.OutPort, m.OutGroup) {
			st.remove(p, openflow.RemovedDelete)
		}
	}
	return nil
}

// sendsTo reports whether actions output to a port and to a group. flow.PortNone and AnyGroup
// are not asked for.
func sendsTo(actions []flow.Action, port, group uint32) bool {
	return (port == flow.PortNone || anyAction(actions, func(a flow.Action) bool { return portOf(a) == port })) &&
		(group == openflow.AnyGroup || anyAction(actions, func(a flow.Action) bool { return a == flow.Action(flow.GroupAction{ID: group}) }))
}

// portOf is the port that an action outputs to; flow.PortNone for none.
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

// references is the error of actions that name a group or meter that is not there.
func (st *stage) references(actions []flow.Action) (err error) {
	anyAction(actions, func(a flow.Action) bool {
		switch a := a.(type) {
		case flow.GroupAction:
			err = st.hasGroup(a.ID)
		case flow.MeterAction:
			err = st.hasMeter(a.ID)
		case flow.Controller:
			if a.MeterID != 0 {
				err = st.hasMeter(a.MeterID)
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

func (st *stage) hasGroup(id uint32) error {
	all, err := st.loadGroups()
	if err == nil && all[id] == nil {
		err = openflow.Fail(openflow.BadOutGroup, "there is no group %d", id)
	}
	return err
}

func (st *stage) hasMeter(id uint32) error {
	all, err := st.loadMeters()
	if err == nil && all[id] == nil {
		err = openflow.Fail(openflow.InvalidMeter, "there is no meter %d", id)
	}
	return err
}
