package telemetry

import (
	"fmt"
	"io"
	"strings"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane/program"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
)

// Marks explains a pipeline's bits of registers and marks in words. The switch does not know
// their meaning.
type Marks interface {
	// Match explains a table's match.
	Match(table uint8, m flow.Minimatch) []string
	// Change explains how a table's entry changed a field.
	Change(table uint8, id flow.FieldID, before, after flow.Value) []string
	// Conn explains a connection's mark and label.
	Conn(mark uint32, label flow.Value) []string
}

// noMarks explains nothing.
type noMarks struct{}

// Match implements Marks.
func (noMarks) Match(uint8, flow.Minimatch) []string { return nil }

// Change implements Marks.
func (noMarks) Change(uint8, flow.FieldID, flow.Value, flow.Value) []string { return nil }

// Conn implements Marks.
func (noMarks) Conn(uint32, flow.Value) []string { return nil }

// WriteText writes a trace table by table, in the style of ofproto/trace. It writes each entry,
// its actions with their changes, conntrack's answers, the packets that leave, and the verdict.
// If marks is not nil, its explanations follow numbers in brackets.
func (t *Trace) WriteText(w io.Writer, marks Marks) error {
	if marks == nil {
		marks = noMarks{}
	}
	p := &tracePrinter{names: t.Names, marks: marks, before: &t.Start}
	p.line(0, "Packet: %s", flow.KeyText(&t.Start, t.Names))
	for i := range t.Steps {
		p.step(&t.Steps[i])
		p.before = &t.Steps[i].After
	}
	p.line(0, "")
	p.line(0, "Verdict: %s", t.Verdict.Text(t.Names))
	_, err := io.WriteString(w, p.b.String())
	return err
}

// Text is the verdict in one sentence.
func (v *Verdict) Text(n *flow.Names) string {
	var parts []string
	for _, no := range v.Outputs {
		parts = append(parts, "output to port "+portText(no, n))
	}
	if v.Answered {
		parts = append(parts, PacketInAnswered)
	} else if v.PacketIn {
		parts = append(parts, PacketInToAgent)
	}
	if v.Waits {
		parts = append(parts, "waits in table "+tableText(v.Table, n)+" for the rest of its datagram")
	}
	if len(parts) > 0 {
		return strings.Join(parts, ", ")
	}
	if !v.Reason.InTable() {
		return fmt.Sprintf("dropped before the first table (%s): %s", v.Reason, v.Reason.Sentence())
	}
	return fmt.Sprintf("dropped in table %s (%s): %s", tableText(v.Table, n), v.Reason, v.Reason.Sentence())
}

type tracePrinter struct {
	b      strings.Builder
	names  *flow.Names
	marks  Marks
	before *flow.Key // the packet before the step
	indent int
}

// bracket is an explanation in brackets; "" if there is none.
func bracket(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return " (" + strings.Join(words, ", ") + ")"
}

func (p *tracePrinter) line(indent int, format string, args ...any) {
	s := strings.Repeat(" ", indent) + fmt.Sprintf(format, args...)
	p.b.WriteString(strings.TrimRight(s, " ") + "\n")
}

func (p *tracePrinter) step(st *Step) {
	p.indent = 4*(st.Depth-1) + 4
	switch st.Kind {
	case StepEntry:
		p.entry(st)
	case StepAction:
		p.line(p.indent, "%s", flow.ActionsText([]flow.Action{st.Action}, flow.Format{Names: p.names}))
	case StepCT:
		p.printNote("%s", p.conntrack(&st.Meta))
	case StepBucket, StepPacketIn:
		p.printNote("%s", st.Note)
	case StepLearn:
		p.printNote("learns%s", st.Entry.Text(flow.Format{Names: p.names}))
	case StepOutput:
		p.output(st)
	case StepWait:
		p.printNote("waits for the rest of its datagram: only that can be tracked")
	case StepDrop:
		p.printNote("goes nowhere from here (%s): %s", st.Reason, st.Reason.Sentence())
	}
	if changes := p.changes(st); st.Kind == StepAction && changes != "" {
		p.printNote("%s", changes)
	}
}

func (p *tracePrinter) printNote(format string, args ...any) {
	p.line(p.indent+2, "-> "+format, args...)
}

func (p *tracePrinter) entry(st *Step) {
	p.line(0, "")
	head := fmt.Sprintf("%*d. %s: ", p.indent-2, st.Table, p.names.Table(st.Table))
	if st.Entry == nil {
		p.line(0, "%sno entry matches", head)
		return
	}
	match := st.Entry.Match.Text(p.names)
	if match != "" {
		match += ", "
	}
	p.line(0, "%s%spriority %d%s", head, match, st.Entry.Priority, bracket(p.marks.Match(st.Table, st.Entry.Match)))
}

// changes lists the fields that a step changed, with their new values.
func (p *tracePrinter) changes(st *Step) string {
	var parts []string
	for _, id := range st.Changed {
		f := flow.FieldByID(id)
		words := p.marks.Change(st.Table, id, f.Get(p.before), f.Get(&st.After))
		parts = append(parts, flow.FieldText(id, &st.After, p.names)+bracket(words))
	}
	return strings.Join(parts, ", ")
}

func (p *tracePrinter) output(st *Step) {
	var k flow.Key
	flow.Extract(packet.FrameOf(st.Frame), 0, &k)
	p.printNote("leaves by port %s", portText(st.Port, p.names))
	p.printNote("as %s", flow.KeyText(&k, p.names))
	if st.Tunnel.Dst.IsValid() {
		p.printNote("in a tunnel to %s, VNI %d", st.Tunnel.Dst, st.Tunnel.ID)
	}
	if st.Mark != 0 {
		words := p.marks.Change(st.Table, flow.PktMark, flow.Value{}, flow.Value{Lo: uint64(st.Mark)})
		p.printNote("with pkt_mark %#x%s", st.Mark, bracket(words))
	}
}

// MetaKey is a key with a packet's conntrack fields only.
func MetaKey(m *conntrack.Meta) (k flow.Key) {
	program.PutMeta(&k, m, new(conntrack.Original))
	return k
}

// conntrack is a packet's fields after ct(), as they print.
func (p *tracePrinter) conntrack(m *conntrack.Meta) string {
	k := MetaKey(m)
	parts := make([]string, 0, 4)
	for _, id := range []flow.FieldID{flow.CTState, flow.CTZone, flow.CTMark, flow.CTLabel} {
		parts = append(parts, flow.FieldText(id, &k, nil))
	}
	return strings.Join(parts, ",") + bracket(p.marks.Conn(m.Mark, flow.Value{Hi: m.Label.Hi, Lo: m.Label.Lo}))
}

func portText(no uint32, n *flow.Names) string {
	if name := n.Port(no); name != "" {
		return fmt.Sprintf("%d (%q)", no, name)
	}
	return fmt.Sprint(no)
}

func tableText(id uint8, n *flow.Names) string {
	if name := n.Table(id); name != "" {
		return name
	}
	return fmt.Sprint(id)
}
