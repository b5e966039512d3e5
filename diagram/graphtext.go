package diagram

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/antrail/antrail/internal/printable"
)

// The map as text. DOT is for Graphviz, Mermaid for documents that draw it. Both name their
// nodes by the table's number: t4.

// dialect has the syntax of a language.
type dialect struct {
	head, foot string
	stage      func(i int, name string) string
	stageEnd   string
	table      func(id uint8, name string) string
	edge       func(e *Edge) string
	drop       func(id uint8) string // a table drops packets
}

// write writes the map in a dialect: stages with their tables, ways, and drops.
func (m *Map) write(w io.Writer, d *dialect) error {
	var b bytes.Buffer
	b.WriteString(d.head)
	for i, s := range m.stages() {
		if s.stage != "" {
			b.WriteString(d.stage(i, s.stage))
		}
		for _, t := range s.tables {
			b.WriteString(d.table(m.Tables[t].ID, m.Tables[t].Name))
		}
		if s.stage != "" {
			b.WriteString(d.stageEnd)
		}
	}
	for i := range m.Edges {
		b.WriteString(d.edge(&m.Edges[i]))
	}
	for i := range m.Tables {
		if t := &m.Tables[i]; t.Drops > 0 {
			b.WriteString(d.drop(t.ID))
		}
	}
	b.WriteString(d.foot)
	_, err := w.Write(b.Bytes())
	return err
}

var dot = dialect{
	head: "digraph pipeline {\n  rankdir=LR;\n  node [shape=box, fontname=\"sans-serif\"];\n",
	foot: "}\n",
	stage: func(i int, name string) string {
		return fmt.Sprintf("  subgraph cluster_%d {\n    label=%s;\n", i, dotText(name))
	},
	stageEnd: "  }\n",
	table:    func(id uint8, name string) string { return fmt.Sprintf("    t%d [label=%s];\n", id, dotText(name)) },
	edge: func(e *Edge) string {
		return fmt.Sprintf("  t%d -> t%d [tooltip=%s%s];\n", e.From, e.To, dotText(e.words()), dotStyle(e))
	},
	drop: func(id uint8) string {
		return fmt.Sprintf("  t%d -> d%d [color=red];\n  d%d [label=\"drop\", shape=plaintext, fontcolor=red];\n", id, id, id)
	},
}

// DOT writes the map in Graphviz' language: stages are clusters.
func (m *Map) DOT(w io.Writer) error { return m.write(w, &dot) }

var mermaid = dialect{
	head:     "flowchart LR\n  classDef drop fill:#fbe3e1,stroke:#b3261e,color:#410e0b\n",
	stage:    func(i int, name string) string { return fmt.Sprintf("  subgraph s%d[\"%s\"]\n", i, mermaidText(name)) },
	stageEnd: "  end\n",
	table:    func(id uint8, name string) string { return fmt.Sprintf("    t%d[\"%s\"]\n", id, mermaidText(name)) },
	edge: func(e *Edge) string {
		arrow := "-->"
		if e.words() == string(Learn) {
			arrow = "-.->"
		}
		return fmt.Sprintf("  t%d %s|%s| t%d\n", e.From, arrow, e.words(), e.To)
	},
	drop: func(id uint8) string { return fmt.Sprintf("  t%d --> d%d([\"drop\"]):::drop\n", id, id) },
}

// Mermaid writes the map as a flowchart: stages are subgraphs.
func (m *Map) Mermaid(w io.Writer) error { return m.write(w, &mermaid) }

// stages are runs of tables of one stage.
func (m *Map) stages() []column {
	var all []column
	for i := range m.Tables {
		last := len(all) - 1
		if last < 0 || all[last].stage != m.Tables[i].Stage {
			all = append(all, column{stage: m.Tables[i].Stage})
			last++
		}
		all[last].tables = append(all[last].tables, i)
	}
	return all
}

// words are the edge's kinds.
func (e *Edge) words() string {
	var words []string
	for _, k := range e.Kinds {
		words = append(words, string(k))
	}
	return strings.Join(words, ", ")
}

// dotText is a quoted string of DOT.
func dotText(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(printable.Text(s)) + `"`
}

func dotStyle(e *Edge) string {
	switch e.words() {
	case string(Learn):
		return ", style=dashed"
	case string(Resubmit), string(Group):
		return ", arrowhead=empty"
	}
	return ""
}

// mermaidText is a text within quotes. Entities replace characters that would end it or begin a
// tag.
func mermaidText(s string) string {
	return strings.NewReplacer("#", "#35;", `"`, "#quot;", "<", "#lt;", ">", "#gt;").Replace(printable.Text(s))
}

// Text writes the map as a table, a line for each table.
func (m *Map) Text(w io.Writer, l *Load) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "ID\tTABLE\tSTAGE\tENTRIES\tPACKETS\tDROPPED\tLEADS TO")
	for i := range m.Tables {
		t := &m.Tables[i]
		stage := t.Stage
		if stage == "" {
			stage = "-"
		}
		fmt.Fprintf(tw, "%d\t%s\t%s\t%d\t%s\t%s\t%s\n", t.ID, t.Name, stage, t.Entries, l.text(l.Tables[i]), l.text(l.Drops[i]), m.leadsText(t))
	}
	return tw.Flush()
}

// leadsText lists where a table leads: tables, with the kind unless it is goto_table, then
// ports, agent and drops.
func (m *Map) leadsText(t *Table) string {
	var to []string
	for i := range m.Edges {
		e := &m.Edges[i]
		if e.From != t.ID {
			continue
		}
		name := m.Table(e.To).Name
		if how := e.words(); how != string(Goto) {
			name += " (" + how + ")"
		}
		to = append(to, name)
	}
	for _, end := range []struct {
		n    int
		text string
	}{{t.Outputs, "out"}, {t.PacketIns, "agent"}, {t.Drops, "drop"}} {
		if end.n > 0 {
			to = append(to, end.text)
		}
	}
	if len(to) == 0 {
		return "back to the caller" // by resubmit
	}
	return strings.Join(to, ", ")
}
