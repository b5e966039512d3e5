package ofserver

import (
	"slices"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/vswitchd/openflow"
)

// maxMonitors is how many flow monitors a connection may have.
const maxMonitors = 64

// flowMonitors are the flow monitors of a connection. Server.changes guards all but updates.
type flowMonitors struct {
	all map[uint32]*openflow.FlowMonitor
	// parts are the updates of the current message. If abbreviated is set, one part stands for all
	// changes that the connection itself has made by it.
	parts       []openflow.Part
	abbreviated bool
	updates     *updateQueue
}

// answerMonitors makes, changes or deletes monitors, and answers with the present entries.
func (c *connection) answerMonitors(xid uint32, q *openflow.Request) error {
	u := c.monitors.updates
	parts, err := c.replaceMonitors(q)
	defer u.release() // updates about later changes follow the answer
	if err != nil {
		return err
	}
	return c.writePages(xid, q, slices.Values(parts))
}

// replaceMonitors applies the monitors of a request, all or none, and holds updates back. It
// returns the parts of the answer.
func (c *connection) replaceMonitors(q *openflow.Request) ([]openflow.Part, error) {
	c.s.changes.Lock()
	defer c.s.changes.Unlock()
	c.monitors.updates.holdBack()
	after, err := c.monitors.after(q.Monitors)
	if err != nil {
		return nil, err
	}
	if err := c.s.watch.start(c.s); err != nil {
		return nil, err
	}
	c.s.watch.setMonitors(c, after)
	var initial []*openflow.FlowMonitor
	for i := range q.Monitors {
		if m := &q.Monitors[i]; m.Command != openflow.MonitorDelete && m.Flags&openflow.MonitorInitial != 0 {
			initial = append(initial, m)
		}
	}
	return c.s.watch.initialParts(initial), nil
}

// after are the monitors of a connection after a request.
func (f *flowMonitors) after(requested []openflow.FlowMonitor) (map[uint32]*openflow.FlowMonitor, error) {
	after := map[uint32]*openflow.FlowMonitor{}
	for id, m := range f.all {
		after[id] = m
	}
	for i := range requested {
		m := &requested[i]
		switch have := after[m.ID]; {
		case m.Table != openflow.AllTables && m.Table > lastTable:
			return nil, openflow.Fail(openflow.BadTableID, "there is no table %d", m.Table)
		case m.Command == openflow.MonitorAdd && have != nil:
			return nil, openflow.Fail(openflow.MonitorExists, "flow monitor %d is there already", m.ID)
		case m.Command != openflow.MonitorAdd && have == nil:
			return nil, openflow.Fail(openflow.MonitorUnknown, "there is no flow monitor %d", m.ID)
		case m.Command == openflow.MonitorDelete:
			delete(after, m.ID)
			continue
		}
		after[m.ID] = m
	}
	if len(after) > maxMonitors {
		return nil, openflow.Fail(openflow.RequestNotPermitted, "a connection has at most %d flow monitors", maxMonitors)
	}
	return after, nil
}

// cancelMonitor deletes a monitor.
func (c *connection) cancelMonitor(q *openflow.FlowMonitorCancel) error {
	c.s.changes.Lock()
	defer c.s.changes.Unlock()
	after, err := c.monitors.after([]openflow.FlowMonitor{{ID: q.ID, Command: openflow.MonitorDelete, FlowSelection: openflow.FlowSelection{Table: openflow.AllTables}}})
	if err == nil {
		c.s.watch.setMonitors(c, after)
	}
	return err
}

// endMonitors deletes all of them. It is called when the connection has ended.
func (c *connection) endMonitors() {
	c.s.changes.Lock()
	defer c.s.changes.Unlock()
	c.s.watch.setMonitors(c, nil)
}

// flowChange is a change of an entry.
type flowChange struct {
	openflow.FlowUpdate
	old *flow.Entry // the replaced entry; nil for none, or if it is not known
	own bool        // the flow mod xid of the connection made the change itself
	xid uint32
	// message is the number of the message that made the change. The changes of one message are sent
	// together.
	message int
}

// wantedFlags are the flags of the monitors that report a kind of change; 0 if there are none.
func wantedFlags(monitors map[uint32]*openflow.FlowMonitor, kind openflow.MonitorFlags, e, old *flow.Entry) (flags openflow.MonitorFlags) {
	for _, m := range monitors {
		if m.Flags&kind != 0 && covers(m, e, old) {
			flags |= m.Flags
		}
	}
	return flags
}

// covers reports whether a monitor selects an entry, or the one that it replaces.
func covers(m *openflow.FlowMonitor, e, old *flow.Entry) bool {
	return (m.Table == openflow.AllTables || m.Table == e.Table) && e.Match.Within(&m.Match) &&
		(sendsTo(e.Actions, m.OutPort, m.OutGroup) || old != nil && sendsTo(old.Actions, m.OutPort, m.OutGroup))
}

// kindsOf are the flags that ask for an event.
var kindsOf = map[openflow.FlowEvent]openflow.MonitorFlags{
	openflow.EventAdded: openflow.MonitorAdded, openflow.EventRemoved: openflow.MonitorRemoved, openflow.EventModified: openflow.MonitorModified,
}

// addUpdate adds the update about a change if a monitor wants it. own is set if the monitors'
// connection made the change. known is the entry before the change; nil if there was none.
func (f *flowMonitors) addUpdate(ch *flowChange, own bool, known *watchedFlow) {
	flags := wantedFlags(f.all, kindsOf[ch.Event], ch.Entry, ch.old)
	if flags == 0 {
		return
	}
	if pausedAt := f.updates.pausedSince(); pausedAt != 0 {
		if ch.Event != openflow.EventRemoved || known == nil || known.first > pausedAt {
			return // reported when the monitors resume; never if the controller does not know a removed entry
		}
		own = false
	}
	if own && flags&openflow.MonitorOwn == 0 {
		if !f.abbreviated {
			f.abbreviated = true
			f.parts = append(f.parts, &openflow.FlowUpdate{Event: openflow.EventAbbreviated, XID: ch.xid})
		}
		return
	}
	u := ch.FlowUpdate
	u.Actions = flags&openflow.MonitorActions != 0
	f.parts = append(f.parts, &u)
}

// queueUpdates queues the updates of addUpdate. now is the number of the newest change.
func (f *flowMonitors) queueUpdates(c *connection, now uint64) {
	parts := f.parts
	f.parts, f.abbreviated = nil, false
	if len(parts) == 0 {
		return
	}
	q := &openflow.Request{Kind: openflow.StatsFlowMonitor, NX: c.version == openflow.V10}
	for b, err := range openflow.Pages(c.version, 0, q, slices.Values(parts)) {
		if err != nil {
			c.s.Log.Info("a flow monitor misses a change of an entry", "why", err)
			break
		}
		f.updates.enqueue(b)
	}
	if !f.updates.pauseIfFull(now, func() []byte { return c.monitorState(false) }) {
		c.s.Log.Warn("a controller does not read the updates of its flow monitors, and is disconnected")
		c.peer.Close()
	}
}

// monitorState is the message that monitors pause or resume.
func (c *connection) monitorState(resumed bool) []byte {
	b, err := openflow.Encode(openflow.Message{Version: c.version, Body: &openflow.FlowMonitorState{Resumed: resumed}})
	if err != nil {
		c.s.Log.Error("a message cannot be encoded", "why", err)
	}
	return b
}

// runUpdates writes updates until the connection has ended.
func (c *connection) runUpdates() {
	u := c.monitors.updates
	for {
		b, drained, ok := u.next()
		switch {
		case !ok:
			return
		case drained:
			c.resumeMonitors()
		case c.write(b) != nil:
			u.close()
		default:
			u.markWritten(b)
		}
	}
}

// resumeMonitors sends the changes that happened while the monitors paused. The controller has read
// all earlier updates.
func (c *connection) resumeMonitors() {
	c.s.changes.Lock()
	parts := c.s.watch.partsSince(c.monitors.all, c.monitors.updates.resume())
	c.s.changes.Unlock()
	q := &openflow.Request{Kind: openflow.StatsFlowMonitor, NX: c.version == openflow.V10}
	if len(parts) > 0 {
		if err := c.writePages(0, q, slices.Values(parts)); err != nil {
			c.s.Log.Info("a flow monitor misses changes of entries", "why", err)
		}
	}
	if c.write(c.monitorState(true)) != nil {
		c.monitors.updates.close()
	}
}
