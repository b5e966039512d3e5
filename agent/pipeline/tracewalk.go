package pipeline

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/tables/layout"
	"github.com/antrail/antrail/tables/programs"
	"github.com/antrail/antrail/trace"
)

// The switch's record of a packet becomes a walk with names and objects.

// Walker makes the walks of one trace. It reads the objects behind an entry once in
// keepOrigins, not for each packet. It is for one goroutine.
type Walker struct {
	Pipeline *Pipeline
	Node     string
	Text     bool    // walks have a text as of ofproto/trace
	Tables   []uint8 // tables at which a walk has the packet
	Most     int     // bytes of a packet; 0 for all that were recorded
	origins  map[*flow.Entry][]trace.Object
	drivers  map[uint32]string // of ports, by number
	readAt   time.Time         // when origins and drivers were last cleared
}

// keepOrigins is how long the cached objects behind an entry are used.
const keepOrigins = time.Second

// Walk converts a live trace's record to a walk.
func (m *Walker) Walk(t *telemetry.Trace) (*trace.Walk, error) {
	m.refresh()
	a := t.Live
	w := &trace.Walk{
		ID: idText(a.ID), Node: m.Node, Time: a.Time, Followed: a.Followed, Resumed: a.Resumed,
		InPort: m.port(t.Names, a.Port), Packet: flow.KeyText(&t.Start, t.Names), Frame: m.bytes(a.Frame), Length: a.Len,
		Undone: undone(&a.Offload), Tunnel: tunnelOf(&a.Tunnel), Mark: a.Mark, Verdict: m.verdict(t),
	}
	if a.ID != 0 {
		w.InPort.Driver = m.driver(a.Port)
	}
	before, began := &t.Start, int64(0)
	for i := range t.Steps {
		st := &t.Steps[i]
		if i == 0 {
			began = st.At
		}
		w.Steps = append(w.Steps, m.step(t, st, before))
		w.Steps[i].AfterNS = st.At - began
		before = &st.After
	}
	if m.Text {
		var b bytes.Buffer
		if err := t.WriteText(&b, programs.MarkNames(t.Names)); err != nil {
			return nil, err
		}
		if by := w.By(); by != "" {
			fmt.Fprintf(&b, "Because of: %s\n", by)
		}
		w.Text = b.String()
	}
	return w, nil
}

// bytes limits a packet to Most.
func (m *Walker) bytes(b []byte) []byte {
	if m.Most == 0 {
		return b
	}
	return b[:min(len(b), m.Most)]
}

// idText is a walk's id as text; "" for a made-up packet, whose id is 0.
func idText(id uint64) string {
	if id == 0 {
		return ""
	}
	return fmt.Sprintf("%016x", id)
}

// refresh clears the cache after keepOrigins.
func (m *Walker) refresh() {
	if now := time.Now(); now.Sub(m.readAt) > keepOrigins {
		m.origins, m.drivers, m.readAt = map[*flow.Entry][]trace.Object{}, nil, now
	}
}

// driver is the driver of a port of the switch; "" if the port is gone.
func (m *Walker) driver(no uint32) string {
	if m.drivers == nil {
		m.drivers = map[uint32]string{}
		for _, p := range m.Pipeline.Switch.Ports() {
			m.drivers[p.No] = p.Driver
		}
	}
	return m.drivers[no]
}

func (m *Walker) port(n *flow.Names, no uint32) trace.Port {
	return trace.Port{No: no, Name: n.Port(no), Pod: m.Pipeline.podAt(no)}
}

func undone(o *packet.Offload) *trace.Undone {
	if o.None() {
		return nil
	}
	return &trace.Undone{ChecksumStart: o.ChecksumStart, ChecksumOffset: o.ChecksumOffset, SegmentSize: o.SegmentSize}
}

// tunnelOf converts an outer header; nil for none.
func tunnelOf(t *packet.Tunnel) *trace.Tunnel {
	if !t.Src.IsValid() && !t.Dst.IsValid() {
		return nil
	}
	text := func(a netip.Addr) string {
		if !a.IsValid() {
			return ""
		}
		return a.String()
	}
	return &trace.Tunnel{Src: text(t.Src), Dst: text(t.Dst), VNI: t.ID}
}

func (m *Walker) verdict(t *telemetry.Trace) trace.Verdict {
	v := &t.Verdict
	r := trace.Verdict{Text: v.Text(t.Names), PacketIn: v.PacketIn, Waits: v.Waits}
	for _, no := range v.Outputs {
		r.Outputs = append(r.Outputs, m.port(t.Names, no))
	}
	if v.Waits {
		r.Table = TableName(t.Names, v.Table)
	}
	if v.Reason != telemetry.NotDropped {
		if r.Reason = v.Reason.String(); v.Reason.InTable() {
			r.Table = TableName(t.Names, v.Table)
		}
	}
	return r
}

// step converts a step. before is the packet's key before it.
func (m *Walker) step(t *telemetry.Trace, st *telemetry.Step, before *flow.Key) trace.Step {
	s := trace.Step{Kind: string(st.Kind), Table: TableName(t.Names, st.Table), TableID: st.Table, Depth: st.Depth}
	marks := programs.MarkNames(t.Names)
	if st.Entry != nil {
		s.Entry = m.Entry(t.Names, st)
	}
	if st.Action != nil {
		s.Action = flow.ActionsText([]flow.Action{st.Action}, flow.Format{Names: t.Names})
	}
	switch st.Kind {
	case telemetry.StepEntry:
		if slices.Contains(m.Tables, st.Table) {
			s.Frame, s.Packet = m.bytes(st.Frame), flow.KeyText(before, t.Names)
		}
	case telemetry.StepAction:
		s.Changes = changes(marks, before, st)
	case telemetry.StepCT:
		s.CT = ctOf(marks, before, st)
	case telemetry.StepBucket:
		s.Bucket = m.bucket(st)
	case telemetry.StepPacketIn:
		s.Frame, s.Note = m.bytes(st.Frame), st.Note
	case telemetry.StepOutput:
		port := m.port(t.Names, st.Port)
		s.Port, s.Frame, s.Tunnel, s.Mark, s.Dropped = &port, m.bytes(st.Frame), tunnelOf(&st.Tunnel), st.Mark, st.Dropped
		s.Marks = marks.Change(st.Table, flow.PktMark, flow.Value{}, flow.Value{Lo: uint64(st.Mark)})
	case telemetry.StepDrop:
		s.Reason, s.Sentence = st.Reason.String(), st.Reason.Sentence()
	}
	return s
}

// Entry is the entry of a step, with the objects behind it.
func (m *Walker) Entry(n *flow.Names, st *telemetry.Step) *trace.Entry {
	e := &trace.Entry{Match: st.Entry.Match.Text(n), Priority: st.Entry.Priority, Actions: flow.ActionsText(st.Entry.Actions, flow.Format{Names: n})}
	e.Marks = programs.MarkNames(n).Match(st.Entry.Table, st.Entry.Match)
	if st.Entry.Cookie != 0 {
		e.Cookie = fmt.Sprintf("0x%x", st.Entry.Cookie)
	}
	if !m.Pipeline.HasOrigins() || st.Kind != telemetry.StepEntry {
		return e
	}
	objects, ok := m.origins[st.Entry]
	if !ok {
		for _, o := range m.Pipeline.OriginsOf(st.Entry) {
			objects = append(objects, trace.Object(o))
		}
		m.origins[st.Entry] = objects
	}
	e.Objects = objects
	return e
}

// changes are the fields that a step changed.
func changes(m layout.MarkNames, before *flow.Key, st *telemetry.Step) (all []trace.Change) {
	for _, id := range st.Changed {
		f := flow.FieldByID(id)
		all = append(all, trace.Change{
			Field: f.Name, Before: value(id, before, m.Names), After: value(id, &st.After, m.Names),
			Marks: m.Change(st.Table, id, f.Get(before), f.Get(&st.After)),
		})
	}
	return all
}

// value is a field's value as in matches.
func value(id flow.FieldID, k *flow.Key, n *flow.Names) string {
	_, text, _ := strings.Cut(flow.FieldText(id, k, n), "=")
	return text
}

// ctOf is conntrack's answer, with the changes by NAT.
func ctOf(m layout.MarkNames, before *flow.Key, st *telemetry.Step) *trace.CT {
	k := telemetry.MetaKey(&st.Meta)
	c := &trace.CT{
		State: value(flow.CTState, &k, nil), Zone: st.Meta.Zone, Mark: st.Meta.Mark, Label: value(flow.CTLabel, &k, nil),
		Marks:  m.Conn(st.Meta.Mark, LabelValue(st.Meta.Label)),
		Commit: st.CT.Commit && st.Meta.State&conntrack.Invalid == 0,
	}
	for i, name := range []string{"source", "destination"} {
		was, is := endsOf(before)[i], endsOf(&st.After)[i]
		if was != is {
			c.NAT = append(c.NAT, trace.NAT{End: name, Before: was, After: is})
		}
	}
	return c
}

// endsOf are a packet's two addresses, with ports if it has any.
func endsOf(k *flow.Key) (both [2]string) {
	for i, f := range [2]struct{ v4, v6, port flow.FieldID }{
		{flow.IPSrc, flow.IPv6Src, flow.TCPSrc}, {flow.IPDst, flow.IPv6Dst, flow.TCPDst},
	} {
		addr := flow.AddrIn(k, f.v4, f.v6)
		both[i] = addr.String()
		switch flow.FieldByID(flow.IPProto).Get(k).Lo {
		case packet.ProtoTCP, packet.ProtoUDP, packet.ProtoSCTP:
			both[i] = netip.AddrPortFrom(addr, uint16(flow.FieldByID(f.port).Get(k).Lo)).String()
		}
	}
	return both
}

func (m *Walker) bucket(st *telemetry.Step) *trace.Bucket {
	b := &trace.Bucket{Group: st.Group.ID, Bucket: st.Group.Buckets[st.Bucket].ID, Of: len(st.Group.Buckets)}
	if m.Pipeline.Objects != nil {
		if o, err := m.Pipeline.Objects.ExplainGroup(b.Group); err == nil {
			b.Object = &trace.Object{Object: o.Object.String(), Field: o.Field, Rule: o.Rule}
		}
	}
	return b
}

// TableName is the name of a table, or its number if it has none.
func TableName(n *flow.Names, id uint8) string {
	if name := n.Table(id); name != "" {
		return name
	}
	return fmt.Sprint(id)
}

// LabelValue is a label as a field's value.
func LabelValue(l conntrack.Label) flow.Value { return flow.Value{Hi: l.Hi, Lo: l.Lo} }
