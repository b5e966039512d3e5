package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/antrail/antrail/agent/answer"
	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/diagram"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/trace"
)

// walkPage sends a walk's packets and writes their outcome. That is a page, a capture, and a
// picture for each Node that each packet visits.
func (b *book) walkPage(i int) error {
	w := &walks[i]
	p := &page{book: b}
	var capture bytes.Buffer
	pcapng, err := trace.NewPrinter(trace.FormPcapng, &capture)
	if err != nil {
		return err
	}
	p.printf("# %s\n\n[All tables and walks](../README.md)%s\n\n%s\n\n", w.title, otherWalks(i), oneLine(w.text))
	p.printf("A capture for Wireshark: [%s.pcapng](%s.pcapng). Its interfaces are ports; its comments name the tables.\n\n", w.file, w.file)
	p.printf("A row is a table and the matching entry; `priority=0` alone is the table-miss. *goes to* is a jump. *calls* is a call, and a later row says *back in*. [All words](../../reading.md#words).\n")
	var t talk
	for n := range w.packets {
		way, err := t.send(b.rehearsal, &w.packets[n])
		if err != nil {
			return fmt.Errorf("packet %d: %w", n+1, err)
		}
		if err := pcapng.Print(way); err != nil {
			return err
		}
		if err := p.packet(w, n, way); err != nil {
			return err
		}
	}
	b.files["walks/"+w.file+".md"] = []byte(p.text.String())
	err = pcapng.End()
	b.files["walks/"+w.file+".pcapng"] = capture.Bytes()
	return err
}

func otherWalks(i int) string {
	s := ""
	if i > 0 {
		s += fmt.Sprintf(" · before: [%s](%s.md)", walks[i-1].title, walks[i-1].file)
	}
	if i+1 < len(walks) {
		s += fmt.Sprintf(" · after: [%s](%s.md)", walks[i+1].title, walks[i+1].file)
	}
	return s
}

// talk is a connection whose packets are sent.
type talk struct {
	node, port string         // of the first sender
	arrived    answer.Leaving // the last packet
	answered   []byte         // the answer, as the first sender got it
}

// send sends a packet, and checks that it arrives where the page says.
func (t *talk) send(r *answer.Rehearsal, s *sent) (trace.Joined, error) {
	node, port, frame, err := t.next(s)
	if err != nil {
		return nil, err
	}
	way, left, err := r.Send(node, port, frame)
	if err != nil {
		return nil, err
	}
	at, err := s.arrives(left)
	if err != nil {
		return nil, fmt.Errorf("%s %w", trace.Summary(frame), err)
	}
	switch s.kind {
	case first:
		t.node, t.port = node, port
	case answering:
		t.answered = at.Frame
	}
	t.arrived = at
	return way, nil
}

// next returns the next packet to send, and its port.
func (t *talk) next(s *sent) (node, port string, frame []byte, err error) {
	switch s.kind {
	case answering:
		return t.arrived.Node, t.arrived.Port, turned(t.arrived.Port, t.arrived.Frame, packet.TCPSyn|packet.TCPAck), nil
	case further:
		return t.node, t.port, turned(t.port, t.answered, packet.TCPAck), nil
	}
	frame, err = s.frame()
	return s.from.node, s.from.port, frame, err
}

// turned is an end host's answer to a frame at a port.
func turned(port string, frame []byte, flags uint16) []byte {
	b := packettest.Answer(frame, flags)
	e := packet.Ethernet(b)
	src, dst := e.Dst(), e.Src()
	if port == outside.port {
		src, dst = mac(outside.mac), mac(outside.next) // the Node's kernel has one neighbour for all other Nodes
	}
	e.SetSrc(src)
	e.SetDst(dst)
	if e.Type() == packet.EtherTypeIPv6 {
		packet.IPv6(b[packet.EthernetLen:]).SetHopLimit(64)
		return b
	}
	ip := packet.IPv4(b[packet.EthernetLen:])
	ip.SetTTL(64)
	ip.UpdateChecksum()
	return b
}

// packet writes the outcome of a packet.
func (p *page) packet(w *walk, n int, way trace.Joined) error {
	p.printf("\n## %d. %s\n\n`%s`\n", n+1, w.packets[n].text, trace.Summary(way[0].Frame))
	for i, hop := range way {
		name, again := fmt.Sprintf("%s-%d-%s", w.file, n+1, hop.Node), ""
		if i > 0 && way[i-1].Node == hop.Node {
			name, again = name+"-again", ", again"
		}
		name += ".svg"
		if err := p.drawWalk(name, hop); err != nil {
			return err
		}
		p.printf("\n### On %s%s\n\nEnters by %s", hop.Node, again, portText(&hop.InPort))
		if hop.Tunnel != nil {
			p.printf(", in a tunnel from %s", hop.Tunnel.Src)
		}
		p.printf(".\n\n![The way on the map of %s](%s)\n\n| | table | entry | what it does |\n|---|---|---|---|\n", hop.Node, name)
		if err := p.turns(hop); err != nil {
			return err
		}
		for i := range hop.Steps {
			table := hop.Steps[i].Table
			p.passed[table] = added(p.passed[table], fmt.Sprintf("[%s](walks/%s.md)", w.title, w.file))
		}
		p.printf("\n**%s**\n", verdictText(hop))
	}
	return nil
}

func (b *book) drawWalk(name string, w *trace.Walk) error {
	hops, dropped := api.HopsOf(w)
	chart := b.pipes[w.Node].chart
	for i, h := range hops {
		if i > 0 && !slices.ContainsFunc(chart.Edges, func(e diagram.Edge) bool { return e.From == h.From && e.To == h.To }) {
			return fmt.Errorf("a packet went from table %d to %d, and the map has no such way", h.From, h.To)
		}
	}
	var svg bytes.Buffer
	err := chart.SVG(&svg, diagram.Options{Walk: hops, Dropped: dropped, Bare: true})
	b.files["walks/"+name] = svg.Bytes()
	return err
}

func portText(p *trace.Port) string {
	if p.Pod != "" {
		return p.Name + ", the port of Pod " + p.Pod
	}
	return p.Name
}

func verdictText(w *trace.Walk) string {
	if last := len(w.Steps) - 1; w.Verdict.Reason != "" && last >= 0 && w.Steps[last].Sentence != "" {
		return fmt.Sprintf("Dropped in %s. %s.", w.Verdict.Table, strings.TrimSuffix(w.Steps[last].Sentence, "."))
	}
	var names []string
	for i := range w.Verdict.Outputs {
		names = append(names, portText(&w.Verdict.Outputs[i]))
	}
	if len(names) == 0 {
		return w.Verdict.Text
	}
	return "Leaves by " + strings.Join(names, ", and by ") + "."
}

// turns writes a line for each table of a walk, numbered as on its picture.
func (p *page) turns(w *trace.Walk) error {
	n := 0
	for i := 0; i < len(w.Steps); {
		end := i + 1
		for end < len(w.Steps) && w.Steps[end].Kind != trace.StepEntry {
			end++
		}
		s := &w.Steps[i]
		if s.Kind != trace.StepEntry {
			return errors.New("a walk begins with " + s.Kind)
		}
		n++
		does, err := p.does(w, w.Steps[i:end])
		if err != nil {
			return err
		}
		p.printf("| %d | [%s](../%s.md)%s | %s | %s |\n", n, s.Table, s.Table, p.numberOf(w.Node, s), cell(entryText(s.Entry)), strings.Join(does, "<br>"))
		i = end
	}
	return nil
}

// numberOf is the number of an entry on its table's page. That page has the entries of bookNode
// and those that every Node has.
func (b *book) numberOf(node string, s *trace.Step) string {
	i := slices.IndexFunc(b.tables, func(t *table) bool { return t.name == s.Table })
	if i < 0 || s.Entry == nil || b.tables[i].variant != nil || node != bookNode && len(wanters(s.Entry)) > 0 {
		return ""
	}
	t := b.tables[i]
	for n, e := range t.entries {
		if e.Priority == s.Entry.Priority && e.Match.Text(t.pipe.program.Names) == s.Entry.Match && flow.ActionsText(e.Actions, flow.Format{Names: t.pipe.program.Names}) == s.Entry.Actions {
			return fmt.Sprintf(", entry %d", n+1)
		}
	}
	return ""
}

// entryText is an entry of a walk. It names the entry's objects, unless every Node has the entry.
func entryText(e *trace.Entry) string {
	if e == nil {
		return "none matches"
	}
	text := code(strings.TrimSuffix(fmt.Sprintf("priority=%d,%s", e.Priority, e.Match), ","))
	if objects := wanters(e); len(objects) > 0 {
		text += "<br>for " + someOf(objects)
	}
	return text
}

// wanters are the objects of an entry that not every Node has.
func wanters(e *trace.Entry) (objects []string) {
	for _, o := range e.Objects {
		if !strings.HasPrefix(o.Object, "NodeConfig/") {
			objects = append(objects, o.String())
		}
	}
	return objects
}

// does lists the effects of a table's entry on the packet.
func (p *page) does(w *trace.Walk, steps []trace.Step) (all []string, err error) {
	pipe := p.pipes[w.Node]
	source := p.sources[steps[0].Table]
	for i := range steps[1:] {
		s := &steps[i+1]
		switch s.Kind {
		case trace.StepAction:
			text, err := actionText(pipe, source, s)
			if err != nil {
				return nil, err
			}
			if s.Table != steps[0].Table {
				text = "back in " + s.Table + ": " + text
			}
			all = append(all, text)
		case trace.StepCT:
			all = append(all, ctText(s.CT)...)
		case trace.StepBucket:
			all = append(all, bucketText(s.Bucket))
		case trace.StepLearn:
			all = append(all, "learns "+code(s.Entry.Match)+" in "+s.Table)
		case trace.StepOutput:
			text := "sends it to " + s.Port.Name
			if s.Tunnel != nil {
				text += ", in a tunnel to " + s.Tunnel.Dst
			}
			if s.Mark != 0 {
				text += fmt.Sprintf(", with mark 0x%x for the Node's kernel", s.Mark)
			}
			all = append(all, cell(text)+"<br>"+cell(code(trace.Summary(s.Frame))))
		case trace.StepPacketIn:
			all = append(all, "hands it to the agent")
		case trace.StepDrop:
			all = append(all, "drops it")
		}
	}
	return all, nil
}

// actionText describes an action: the marks that it sets, what it changes, or its next table.
func actionText(p *pipe, source *tableSource, s *trace.Step) (string, error) {
	if table, ok := strings.CutPrefix(s.Action, "goto_table:"); ok {
		return "goes to " + table, nil
	}
	actions, err := parse.Actions(s.Action, p.program.Names)
	if err != nil {
		return "", err
	}
	if _, ok := actions[0].(flow.Resubmit); ok {
		return "calls " + cell(code(s.Action)), nil
	}
	if strings.HasPrefix(s.Action, "ct(") || strings.HasPrefix(s.Action, "output:") || len(s.Changes) == 0 && strings.HasPrefix(s.Action, "group:") {
		return cell(code(s.Action)), nil
	}
	var x effect
	x.actions(p, actions)
	if marks := texts(x.writes, source, p); len(marks) > 0 {
		return "sets " + strings.Join(marks, ", "), nil
	}
	var parts []string
	for _, c := range s.Changes {
		parts = append(parts, fmt.Sprintf("%s %s → %s", c.Field, c.Before, c.After))
	}
	return cell(cmp.Or(strings.Join(parts, ", "), code(s.Action))), nil
}

// ctText describes conntrack's answer and its changes.
func ctText(c *trace.CT) []string {
	all := []string{fmt.Sprintf("conntrack, zone %d: %s", c.Zone, cell(code(c.State)))}
	if c.Mark != 0 {
		all[0] += fmt.Sprintf(", mark 0x%x", c.Mark)
	}
	for _, n := range c.NAT {
		all = append(all, fmt.Sprintf("%s %s → %s", n.End, n.Before, n.After))
	}
	return all
}

func bucketText(b *trace.Bucket) string {
	text := fmt.Sprintf("group %d chooses bucket %d of %d", b.Group, b.Bucket, b.Of)
	if b.Object != nil {
		text += ", for " + b.Object.String()
	}
	return text
}

// cell writes a text for a table's cell.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
