package openflow

import "github.com/antrail/antrail/flow"

// A flow monitor reports changes of entries to a controller. It is Nicira's extension in OpenFlow
// 1.0, ONF's in 1.3, and a part of OpenFlow since 1.4.

// ONF's numbers. The request and the cancellation have the same one.
const (
	onfFlowMonitor    = 1870
	onfMonitorPaused  = 1871
	onfMonitorResumed = 1872
)

// MonitorCommand is the command of a FlowMonitor.
type MonitorCommand uint8

// The commands. Before OpenFlow 1.4 there is MonitorAdd alone, beside FlowMonitorCancel.
const (
	MonitorAdd MonitorCommand = iota
	MonitorModify
	MonitorDelete
)

// MonitorFlags select the reports of a monitor.
type MonitorFlags uint16

// The flags. With MonitorOwn, the connection's own changes are reported in full, not abbreviated. It
// has two bits: ovs-ofctl 3.1 sends the second one in OpenFlow 1.4, where the specification has
// ONLY_OWN.
const (
	MonitorInitial  MonitorFlags = 1 << 0
	MonitorAdded    MonitorFlags = 1 << 1
	MonitorRemoved  MonitorFlags = 1 << 2
	MonitorModified MonitorFlags = 1 << 3
	MonitorActions  MonitorFlags = 1 << 4
	MonitorOwn      MonitorFlags = 1 << 5
	monitorOwn14    MonitorFlags = 1 << 6
)

// FlowMonitor is a monitor in a request.
type FlowMonitor struct {
	ID      uint32
	Command MonitorCommand
	Flags   MonitorFlags
	FlowSelection
}

// FlowMonitorCancel is NXT_FLOW_MONITOR_CANCEL, or ONF's message in OpenFlow 1.3.
type FlowMonitorCancel struct{ ID uint32 }

func decodeMonitorCancel(r *reader, _ Version) (Body, error) {
	return &FlowMonitorCancel{r.u32()}, r.done()
}

func decodeNXMonitorCancel(r *reader, v Version) (Body, error) {
	if v != V10 {
		return nil, fail(BadExperimenterType, "a monitor of %s is not cancelled by a message of Nicira", v)
	}
	return decodeMonitorCancel(r, v)
}

// monitors reads the monitors of a request.
func (q *Request) monitors(r *reader, v Version) error {
	for len(r.b) > 0 {
		m, err := r.monitor(v)
		if err != nil {
			return err
		}
		q.Monitors = append(q.Monitors, m)
	}
	return nil
}

func (r *reader) monitor(v Version) (m FlowMonitor, err error) {
	m.ID, m.OutGroup = r.u32(), AnyGroup
	switch v {
	case V10:
		m.Flags, m.OutPort = MonitorFlags(r.u16()), flow.PortOf16(uint32(r.u16()))
		n := int(r.u16())
		m.Table = r.u8()
		r.skip(5)
		err = r.matchNXM(&m.Match, n, nil)
	case V13:
		m.Flags = MonitorFlags(r.u16())
		r.skip(2) // the length of the match, which the match itself has, too
		m.OutPort, m.Table = r.u32(), r.u8()
		r.skip(3)
		err = r.match(&m.Match)
	default:
		m.OutPort, m.OutGroup = r.u32(), r.u32()
		m.Flags, m.Table, m.Command = MonitorFlags(r.u16()), r.u8(), MonitorCommand(r.u8())
		err = r.match(&m.Match)
	}
	if r.short {
		err = r.done()
	}
	if err == nil {
		err = m.check(v)
	}
	return m, err
}

// check returns an error for unknown commands and flags.
func (m *FlowMonitor) check(v Version) error {
	if m.Command > MonitorDelete {
		return fail(MonitorBadCommand, "a flow monitor has no command %d", m.Command)
	}
	known := 2*MonitorOwn - 1
	if v >= V14 {
		known |= monitorOwn14
	}
	if (m.Flags == 0 || m.Flags&^known != 0) && m.Command != MonitorDelete {
		return fail(MonitorBadFlags, "a flow monitor has flags %#x", m.Flags)
	}
	if m.Flags&monitorOwn14 != 0 {
		m.Flags = m.Flags&^monitorOwn14 | MonitorOwn
	}
	return nil
}

// FlowEvent is what happened to an entry.
type FlowEvent uint16

// The events, as OpenFlow 1.4 numbers them. EventAbbreviated stands for changes of the controller
// itself.
const (
	EventInitial FlowEvent = iota
	EventAdded
	EventRemoved
	EventModified
	EventAbbreviated
	eventPaused
	eventResumed
)

// in is the event's number in a version.
func (e FlowEvent) in(v Version) uint16 {
	if v >= V14 || e == EventInitial {
		return uint16(e)
	}
	return uint16(e) - 1
}

// FlowUpdate is a monitor's report about an entry: a part of StatsFlowMonitor.
type FlowUpdate struct {
	Event FlowEvent
	// Reason is why the entry was removed.
	Reason RemovedReason
	// Entry is the present or removed entry.
	Entry *flow.Entry
	// Actions is set if the update has the entry's actions.
	Actions bool
	// XID is the transaction of an EventAbbreviated.
	XID uint32
}

// part implements Part.
func (u *FlowUpdate) part(w *writer, v Version, _ bool) error {
	start := w.len()
	w.u16(0)
	w.u16(u.Event.in(v))
	var err error
	switch {
	case u.Event >= EventAbbreviated:
		w.u32(u.XID)
	case v >= V14:
		err = u.encode14(w, v)
	default:
		err = u.encodeExtension(w, v)
	}
	if err == nil && u.Actions && u.Event < EventAbbreviated {
		err = w.entryActions(u.Entry.Actions, v)
	}
	if n := w.len() - start; err == nil && n > replyRoom {
		err = fail(BadLength, "an entry of %d bytes is too large for a message", n)
	}
	if err == nil {
		w.set16(start, w.len()-start)
	}
	return err
}

// encode14 writes the form of OpenFlow 1.4 and later.
func (u *FlowUpdate) encode14(w *writer, v Version) error {
	e := u.Entry
	w.u8(e.Table)
	w.u8(uint8(u.Reason))
	w.u16(e.IdleTimeout)
	w.u16(e.HardTimeout)
	w.u16(e.Priority)
	w.u32(0)
	w.u64(e.Cookie)
	m := e.Match.Expand()
	return w.match(&m, v)
}

// encodeExtension writes the form of Nicira and ONF.
func (u *FlowUpdate) encodeExtension(w *writer, v Version) error {
	e := u.Entry
	w.u16(uint16(u.Reason))
	w.u16(e.Priority)
	w.u16(e.IdleTimeout)
	w.u16(e.HardTimeout)
	at := w.len()
	w.u16(0)
	w.u8(e.Table)
	w.u8(0)
	w.u64(e.Cookie)
	start, m := w.len(), e.Match.Expand()
	if v == V13 {
		err := w.match(&m, v)
		w.set16(at, int(w.b[start+2])<<8|int(w.b[start+3]))
		return err
	}
	err := w.appendMatch(&m, v)
	w.set16(at, w.len()-start)
	w.pad(start)
	return err
}

// FlowMonitorState is the message that a controller's monitors pause or resume.
type FlowMonitorState struct{ Resumed bool }

// kind is the message's type in a version.
func (s *FlowMonitorState) kind(v Version) uint8 {
	if v >= V14 {
		return typeMultipartReply
	}
	return typeExperimenter
}

// encode implements Body.
func (s *FlowMonitorState) encode(w *writer, v Version) error {
	pick := func(paused, resumed uint32) uint32 {
		if s.Resumed {
			return resumed
		}
		return paused
	}
	switch {
	case v >= V14:
		w.replyHead(StatsFlowMonitor, false, false, v)
		u := FlowUpdate{Event: FlowEvent(pick(uint32(eventPaused), uint32(eventResumed)))}
		return u.part(w, v, false)
	case v == V13:
		w.u32(onf)
		w.u32(pick(onfMonitorPaused, onfMonitorResumed))
	default:
		w.u32(nicira)
		w.u32(pick(nxtMonitorPaused, nxtMonitorResumed))
	}
	return nil
}
