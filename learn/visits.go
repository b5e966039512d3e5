package learn

import (
	"fmt"
	"io"
	"strings"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
)

// visit is a table of a walk. It has the entry that matched, nil for none, the packet at
// that point, and the steps until the next table.
type visit struct {
	table string
	entry *flow.Entry
	key   flow.Key
	steps []telemetry.Step
}

// visits are the tables of a walk in order.
func visits(t *telemetry.Trace) (all []visit) {
	for _, st := range t.Steps {
		if st.Kind == telemetry.StepEntry {
			all = append(all, visit{tableName(t.Names, st.Table), st.Entry, st.After, nil})
		} else if n := len(all); n > 0 {
			all[n-1].steps = append(all[n-1].steps, st)
		}
	}
	return all
}

func tableName(n *flow.Names, id uint8) string {
	if name := n.Table(id); name != "" {
		return name
	}
	return fmt.Sprint(id)
}

// entryText is an entry's priority and match.
func entryText(e *flow.Entry, n *flow.Names) string {
	if e == nil {
		return "no entry matches"
	}
	text := fmt.Sprintf("priority=%d", e.Priority)
	if m := e.Match.Text(n); m != "" {
		text += "," + m
	}
	return text
}

// lines are a visit as text: the entry, and below it its effects.
func (v *visit) lines(n *flow.Names) []string {
	all := []string{fmt.Sprintf("  %-25s %s", v.table, entryText(v.entry, n))}
	var changes []string
	tell := func(format string, args ...any) {
		if len(changes) > 0 {
			all = append(all, "      sets "+strings.Join(changes, ", "))
			changes = nil
		}
		if format != "" {
			all = append(all, "      "+fmt.Sprintf(format, args...))
		}
	}
	for i := range v.steps {
		st := &v.steps[i]
		switch st.Kind {
		case telemetry.StepAction:
			changes = append(changes, changed(st, n)...)
		case telemetry.StepCT:
			tell("conntrack says %s", answer(st))
			changes = append(changes, natted(st, n)...)
		case telemetry.StepBucket:
			tell("%s: %s", st.Note, flow.ActionsText(st.Group.Buckets[st.Bucket].Actions, flow.Format{Names: n}))
		case telemetry.StepLearn:
			tell("learns %s", line(st.Entry, n))
		case telemetry.StepPacketIn:
			tell("goes to the agent, as a packet-in")
		case telemetry.StepOutput:
			tell("leaves by %s%s", n.Port(st.Port), bound(st))
		case telemetry.StepDrop:
			tell("dropped: %s", st.Reason.Sentence())
		}
	}
	tell("")
	return all
}

// changed are the fields that an action changed, with their new values.
func changed(st *telemetry.Step, n *flow.Names) (texts []string) {
	for _, id := range st.Changed {
		texts = append(texts, flow.FieldText(id, &st.After, n))
	}
	return texts
}

// addresses are the fields that NAT rewrites.
var addresses = map[flow.FieldID]bool{flow.IPSrc: true, flow.IPDst: true, flow.IPv6Src: true, flow.IPv6Dst: true, flow.TCPSrc: true, flow.TCPDst: true}

// natted are the addresses and ports that conntrack changed.
func natted(st *telemetry.Step, n *flow.Names) (texts []string) {
	for _, id := range st.Changed {
		if addresses[id] {
			texts = append(texts, flow.FieldText(id, &st.After, n))
		}
	}
	return texts
}

// answer is conntrack's answer.
func answer(st *telemetry.Step) string {
	m := &st.Meta
	text := fmt.Sprintf("%s in zone %d", states(m.State), m.Zone)
	if m.Mark != 0 {
		text += fmt.Sprintf(", ct_mark=%#x", m.Mark)
	}
	if m.Label != (conntrack.Label{}) {
		text += fmt.Sprintf(", ct_label=%s", m.Label)
	}
	if st.CT != nil && st.CT.Commit {
		text += ", and keeps the connection"
	}
	return text
}

// states are the words of a ct_state, as a match on all of them: +new+trk.
func states(s conntrack.State) string {
	var m flow.Match
	m.Add(flow.CTState, flow.Value{Lo: uint64(s)}, flow.Value{Lo: uint64(s)})
	_, words, _ := strings.Cut(m.Text(nil), "ct_state=")
	return words
}

// bound is the tunnel and mark of an output.
func bound(st *telemetry.Step) string {
	text := ""
	if st.Tunnel.Dst.IsValid() {
		text += fmt.Sprintf(", in a tunnel to %s, VNI %d", st.Tunnel.Dst, st.Tunnel.ID)
	}
	if st.Mark != 0 {
		text += fmt.Sprintf(", with pkt_mark %#x", st.Mark)
	}
	return text
}

// lines are the way as text.
func (w *Way) lines() []string {
	var all []string
	for i := range w.Hops {
		h := &w.Hops[i]
		names := h.Trace.Names
		all = append(all, fmt.Sprintf("%s, in by %s: %s", h.Node, names.Port(h.Trace.Live.Port), brief(h.Trace.Live.Frame)))
		for _, v := range visits(h.Trace) {
			all = append(all, v.lines(names)...)
		}
	}
	return append(all, "So: "+w.Ending())
}

// WriteTo writes the way as text: a line for each table, and below it the effects of the
// table's entry. It implements io.WriterTo.
func (w *Way) WriteTo(out io.Writer) (int64, error) {
	n, err := fmt.Fprintf(out, "%s\n%s\n", w.Packet, strings.Join(w.lines(), "\n"))
	return int64(n), err
}

// Ending says in a sentence how the way ended.
func (w *Way) Ending() string {
	var parts []string
	for i, l := range w.Left {
		if i > 0 && w.Left[i-1].Node == l.Node {
			parts[len(parts)-1] += " and " + l.Port
			continue
		}
		parts = append(parts, fmt.Sprintf("%s leaves %s by %s", w.Packet, l.Node, l.Port))
	}
	for i := range w.Hops {
		h := &w.Hops[i]
		v := &h.Trace.Verdict
		if v.PacketIn {
			parts = append(parts, fmt.Sprintf("%s goes to the agent of %s", w.Packet, h.Node))
		} else if len(v.Outputs) == 0 {
			parts = append(parts, fmt.Sprintf("%s is dropped by %s in table %s (%s)", w.Packet, h.Node, tableName(h.Trace.Names, v.Table), v.Reason))
		}
	}
	return strings.Join(parts, ", ") + "."
}

// brief are a frame's headers, as a match.
func brief(b []byte) string { return flow.KeyText(keyOf(b), nil) }

// keyOf is the key of a frame's headers.
func keyOf(b []byte) *flow.Key {
	var k flow.Key
	flow.Extract(packet.FrameOf(b), 0, &k)
	return &k
}
