package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/antrail/antrail/diagram"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
	"github.com/antrail/antrail/tables/programs"
)

// Programs beside Antrea's. Each has one page, with all its tables and the heads of their files.
// The page lists the program's entries on the Node of its sample, each with the statement of the
// document behind it.

// programPage is a program's page while it is written.
type programPage struct {
	text    strings.Builder
	of      *layout.Program
	prog    *flow.Program
	origins map[*flow.Entry]layout.Origin
	sources []*tableSource
}

// programPages writes the pages of all programs that need no cluster.
func (b *book) programPages(top string) error {
	for _, name := range programs.Names() {
		if err := b.programPage(top, name); err != nil {
			return fmt.Errorf("program %s: %w", name, err)
		}
	}
	return nil
}

func (b *book) programPage(top, name string) error {
	of, err := programs.Named(name)
	if err != nil {
		return err
	}
	p := &programPage{of: of}
	if p.prog, p.origins, err = of.Flow(of.Sample()); err != nil {
		return err
	}
	var tables []string
	for _, t := range of.Tables {
		tables = append(tables, t.Name)
	}
	if p.sources, err = readSources(top, "tables/"+name, tables); err != nil {
		return err
	}
	p.write()
	b.files["programs/"+name+".md"] = []byte(p.text.String())
	var svg bytes.Buffer
	err = diagram.Build(p.prog, of.Stage, nil).SVG(&svg, diagram.Options{})
	b.files["programs/"+name+".svg"] = svg.Bytes()
	return err
}

func (p *programPage) printf(format string, args ...any) { fmt.Fprintf(&p.text, format, args...) }

// write writes the page.
func (p *programPage) write() {
	name := p.of.Name
	p.printf("# Program %s\n\n%s.\n\n", name, p.of.Sentence)
	p.printf("[Pipelines](../../pipelines.md) lists the statements of the document behind it: the rows below name them.\nThe program at a prompt:\n\n")
	p.printf("```sh\nbin/antrail dump-flows --program %s --names --no-stats --explain\nbin/antrail pipeline --program %s -o svg -w -\n```\n\n", name, name)
	p.printf("![The tables of %s](%s.svg)\n\n", name, name)
	p.marks()
	for i, t := range p.of.Tables {
		p.table(t, p.sources[i])
	}
}

// marks lists the meaning of bits.
func (p *programPage) marks() {
	p.printf("## Marks\n\nIn other programs the same bits have other meanings.\n\n| field | bits | values |\n|---|---|---|\n")
	for _, f := range p.of.Marks.Fields {
		var values []string
		for _, m := range p.of.Marks.Marks {
			if m.Field.Name == f.Name {
				values = append(values, fmt.Sprintf("%#x %s", m.Value, m.Name))
			}
		}
		p.printf("| %s | `%s` | %s |\n", f.Name, place(f), strings.Join(values, "<br>"))
	}
}

// table writes a table's head and entries.
func (p *programPage) table(t layout.Table, s *tableSource) {
	p.printf("\n## %s\n\nTable %d, stage %s · [`%s`](../../../%s)\n\n", t.Name, t.Number, t.Stage, s.file, s.file)
	for _, text := range s.text {
		p.printf("%s\n\n", text)
	}
	for _, l := range s.labels {
		p.printf("- **%s:** %s\n", l[0], l[1])
	}
	p.printf("\n")
	n := 0
	for _, e := range p.prog.Entries {
		if e.Table == t.Number {
			n++
			p.entry(n, e)
		}
	}
}

// entry writes an entry, the marks that its bits mean, and its purpose.
func (p *programPage) entry(n int, e *flow.Entry) {
	pipe := &pipe{program: p.prog}
	p.printf("%d. %s<br>\n   → %s<br>\n", n, code(entryHead(pipe, e)), code(actionsText(pipe, e.Actions)))
	marks := layout.MarkNames{Names: p.prog.Names, Programs: []*layout.Program{p.of}}
	var parts []string
	if asks := marks.Match(e.Table, e.Match); len(asks) > 0 {
		parts = append(parts, "asks for "+strings.Join(asks, ", "))
	}
	if sets := marks.Sets(e.Table, e.Actions); len(sets) > 0 {
		parts = append(parts, "sets "+strings.Join(sets, ", "))
	}
	if len(parts) > 0 {
		p.printf("   %s<br>\n", strings.Join(parts, "; "))
	}
	o := p.origins[e]
	literal := ""
	if o.Literal {
		literal = ", **the document's own entry**"
	}
	p.printf("   for %s%s: %s\n", o.Row, literal, o.Why)
}

// programLinks links the first page to those of programs.
func (b *book) programLinks(p *page) {
	p.printf("\n## Other programs\n\n")
	for _, name := range programs.Names() {
		of, err := programs.Named(name)
		if err == nil {
			p.printf("- [%s](programs/%s.md). %s.\n", name, name, of.Sentence)
		}
	}
}
