package trace

import (
	"fmt"
	"io"
	"strings"
)

// WriteTree writes a packet's way for reading: each table with its entry, the
// objects behind the entry, its changes, and the end.
func WriteTree(w io.Writer, way Joined) error {
	p := &treePrinter{}
	for i, walk := range way {
		p.walk(walk, i == 0)
	}
	p.b.WriteByte('\n')
	_, err := io.WriteString(w, p.b.String())
	return err
}

type treePrinter struct {
	b     strings.Builder
	depth int
}

// line writes a line at a mark of the tree's trunk.
func (p *treePrinter) line(mark, format string, args ...any) {
	text := strings.Repeat("│  ", max(0, p.depth-1)) + mark + fmt.Sprintf(format, args...)
	p.b.WriteString(strings.TrimRight(text, " ") + "\n")
}

func (p *treePrinter) printNote(format string, args ...any) { p.line("│     ", format, args...) }

func (p *treePrinter) walk(w *Walk, first bool) {
	p.depth = 1
	node := ""
	if w.Node != "" {
		node = " on " + w.Node
	}
	switch {
	case w.Resumed:
		p.line("", "the datagram is whole%s, %s", node, w.Time.Format(clockTime))
	case first && w.ID == "":
		p.line("", "%s%s", Summary(w.Frame), node)
	case w.ID == "":
		p.line("", "goes on%s", node)
	case first:
		p.line("", "%s  %s, %d bytes%s, id %s", w.Time.Format(clockTime), Summary(w.Frame), w.Length, node, w.ID)
	default:
		p.line("", "%s  goes on%s", w.Time.Format(clockTime), node)
	}
	if w.Tunnel != nil {
		p.line("│  ", "enters by %s, in a tunnel from %s, VNI %d", w.InPort, w.Tunnel.Src, w.Tunnel.VNI)
	} else {
		p.line("│  ", "enters by %s", w.InPort)
	}
	for i := range w.Steps {
		p.step(&w.Steps[i])
	}
	p.depth = 1
	p.line("└─ ", "%s", w.Verdict.Text)
	if by := w.By(); by != "" {
		p.line("   ", "because of %s", by)
	}
}

// clockTime is the time of day, in microseconds.
const clockTime = "15:04:05.000000"

func (p *treePrinter) step(s *Step) {
	p.depth = s.Depth
	switch s.Kind {
	case StepEntry:
		p.entry(s)
	case StepAction:
		p.action(s)
	case StepCT:
		p.conntrack(s.CT)
	case StepBucket:
		p.printNote("group %d chose bucket %d of %d%s", s.Bucket.Group, s.Bucket.Bucket, s.Bucket.Of, of(s.Bucket.Object))
	case StepLearn:
		p.printNote("learns table=%s, priority=%d,%s", s.Table, s.Entry.Priority, s.Entry.Match)
	case StepOutput:
		p.output(s)
	case StepPacketIn:
		p.printNote("%s", s.Note)
	case StepWait:
		p.printNote("waits for the rest of its datagram")
	case StepDrop:
		p.printNote("goes nowhere from here (%s): %s", s.Reason, s.Sentence)
	}
}

func of(o *Object) string {
	if o == nil {
		return ""
	}
	return ", " + o.String()
}

func (p *treePrinter) entry(s *Step) {
	if s.Entry == nil {
		p.line("├─ ", "%s: no entry matches", s.Table)
		return
	}
	match := s.Entry.Match
	if match != "" {
		match += ", "
	}
	p.line("├─ ", "%s: %spriority %d%s", s.Table, match, s.Entry.Priority, bracket(s.Entry.Marks))
	p.objects(s.Entry.Objects)
}

// mostObjects is the number of objects that are named for an entry.
const mostObjects = 3

// objects names the objects behind an entry, except those that every Node has.
func (p *treePrinter) objects(all []Object) {
	all = ofCluster(all)
	for i, o := range all {
		if i == mostObjects {
			p.printNote("and %d more", len(all)-i)
			return
		}
		p.printNote("for %s", o)
	}
}

// action writes an action and its changes. A jump has no line, because the next
// table follows.
func (p *treePrinter) action(s *Step) {
	if strings.HasPrefix(s.Action, "goto_table:") {
		return
	}
	var parts []string
	for _, c := range s.Changes {
		parts = append(parts, fmt.Sprintf("%s %s → %s%s", c.Field, c.Before, c.After, bracket(c.Marks)))
	}
	if len(parts) > 0 {
		p.printNote("%s   %s", s.Action, strings.Join(parts, ", "))
	} else {
		p.printNote("%s", s.Action)
	}
}

func (p *treePrinter) conntrack(c *CT) {
	p.printNote("conntrack: %s in zone %d, mark 0x%x, label %s%s", c.State, c.Zone, c.Mark, c.Label, bracket(c.Marks))
	for _, n := range c.NAT {
		p.printNote("NAT: %s %s → %s", n.End, n.Before, n.After)
	}
}

func (p *treePrinter) output(s *Step) {
	p.printNote("leaves by %s", s.Port)
	p.printNote("as %s", Summary(s.Frame))
	if s.Tunnel != nil {
		p.printNote("in a tunnel to %s, VNI %d", s.Tunnel.Dst, s.Tunnel.VNI)
	}
	if s.Mark != 0 {
		p.printNote("with mark 0x%x%s", s.Mark, bracket(s.Marks))
	}
	if s.Dropped {
		p.printNote("but no memory was left for it")
	}
}

// String is the port with its number and its Pod: client-a (36, default/client).
func (p Port) String() string {
	parts := []string{fmt.Sprint(p.No)}
	if p.Pod != "" {
		parts = append(parts, p.Pod)
	}
	if p.Name == "" {
		return "port " + strings.Join(parts, ", ")
	}
	return fmt.Sprintf("%s (%s)", p.Name, strings.Join(parts, ", "))
}
