package trace

import (
	"fmt"
	"io"
	"strings"
)

// The form mermaid: one flowchart, which documents and issue trackers draw. Each
// packet is a box with the ports, the tables and the verdict of its way.

// mermaid prints ways as boxes of one chart.
type mermaid struct {
	w    io.Writer
	ways int
}

// mermaidHead begins the chart. Drops are red.
const mermaidHead = `flowchart LR
  classDef port fill:#e8f1fb,stroke:#3670a8,color:#123
  classDef drop fill:#fbe3e1,stroke:#b3261e,color:#410e0b
`

// Print implements Printer.
func (m *mermaid) Print(way Joined) error {
	c := mermaidWay{number: m.ways}
	if m.ways == 0 {
		c.b.WriteString(mermaidHead)
	}
	m.ways++
	c.print(way)
	_, err := io.WriteString(m.w, c.b.String())
	return err
}

// End implements Printer. A chart without packets is valid too.
func (m *mermaid) End() error {
	if m.ways > 0 {
		return nil
	}
	_, err := io.WriteString(m.w, mermaidHead)
	return err
}

// mermaidWay writes a packet's box.
type mermaidWay struct {
	b             strings.Builder
	number, nodes int
	last          string // the node to link the next one from; "" for none
}

func (c *mermaidWay) print(way Joined) {
	fmt.Fprintf(&c.b, "  subgraph p%d[\"%s\"]\n", c.number, mermaidText(Summary(way[0].Frame)))
	for i, w := range way {
		link := ""
		if i > 0 {
			link = "-.->"
		}
		name := w.InPort.String()
		if w.Node != "" {
			name += "\non " + w.Node
		}
		c.node(link, "([", name, "])", "port")
		c.walk(w)
	}
	c.b.WriteString("  end\n")
}

// node writes another node. It links it from the last one unless link is "".
func (c *mermaidWay) node(link, open, text, shut, class string) {
	id := fmt.Sprintf("p%dn%d", c.number, c.nodes)
	c.nodes++
	from := ""
	if c.last != "" && link != "" {
		from = c.last + " " + link + " "
	}
	if class != "" {
		class = ":::" + class
	}
	fmt.Fprintf(&c.b, "    %s%s%s\"%s\"%s%s\n", from, id, open, mermaidText(text), shut, class)
	c.last = id
}

// walk writes the tables of one Node and the packet's end there.
func (c *mermaidWay) walk(w *Walk) {
	left := false
	for i, steps := range w.visits() {
		c.node("-->", "[", strings.Join(tableLines(steps), "\n"), "]", "")
		table := c.last
		for _, s := range steps {
			if s.Kind == StepOutput {
				left = true
				c.last = table
				c.node("-->", "([", s.Port.String(), "])", "port")
			}
		}
		if i+len(steps) < len(w.Steps) && left {
			c.last = table
		}
	}
	switch {
	case w.Verdict.Reason != "":
		c.node("-->", "([", w.Verdict.Text, "])", "drop")
	case !left:
		c.node("-->", "([", w.Verdict.Text, "])", "port")
	}
}

// tableLines describe a table: its entry, and the entry's effect on the packet.
func tableLines(steps []Step) []string {
	s := &steps[0]
	lines := []string{s.Table}
	switch {
	case s.Kind == StepEntry && s.Entry == nil:
		lines = append(lines, "no entry")
	case s.Kind == StepEntry:
		lines = append(lines, matchText(s.Entry))
	}
	for i := range steps {
		s := &steps[i]
		switch {
		case s.CT != nil:
			lines = append(lines, "ct "+s.CT.State)
			for _, n := range s.CT.NAT {
				lines = append(lines, fmt.Sprintf("NAT %s %s → %s", n.End, n.Before, n.After))
			}
		case s.Bucket != nil:
			lines = append(lines, fmt.Sprintf("group %d bucket %d", s.Bucket.Group, s.Bucket.Bucket))
		}
		for _, change := range s.Changes {
			if change.inPacket() {
				lines = append(lines, fmt.Sprintf("%s %s → %s", change.Field, change.Before, change.After))
			}
		}
	}
	return lines
}

// mermaidEscapes replaces characters that a quoted text cannot have. Names of
// objects and ports may have any.
var mermaidEscapes = strings.NewReplacer(`"`, "#quot;", "#", "#35;", "<", "#lt;", ">", "#gt;", "`", "#96;", "&", "#amp;", "\\", "#92;", "\n", "<br/>", "\r", " ")

func mermaidText(s string) string { return mermaidEscapes.Replace(s) }
