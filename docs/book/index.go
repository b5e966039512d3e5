package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/antrail/antrail/diagram"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables"
)

// place is the bits of a field: reg0[0..3].
func place(f tables.Field) string {
	name := flow.FieldByID(f.Subfield.Field).Name
	if f.N == 1 {
		return fmt.Sprintf("%s[%d]", name, f.Ofs)
	}
	return fmt.Sprintf("%s[%d..%d]", name, f.Ofs, f.Ofs+f.N-1)
}

const indexText = `# The pipeline, table by table

A **packet** enters by a **port** and walks **tables of flow entries** until an entry gives a verdict. This book has a page
for each table: its purpose, the tables that set its marks, and each of its entries with its object. The entries are those of
%s in the cluster of [%s](../../%s); %s has the same tables. Begin with [Read the pipeline](../reading.md): it explains the words,
and one packet's walk with a reason at each table.

` + "`go run ./docs/book`" + ` makes these pages from the tables' files, from objects and from real packets. A test fails if they
are stale.

![The pipeline](pipeline.svg)

## Walks

Real packets through the switches of both Nodes, table by table, with a map and a capture.

`

// indexPage writes the first page and the whole map.
func (b *book) indexPage() error {
	p := &page{book: b}
	p.printf(indexText, bookNode, objects, objects, "node-b")
	for _, w := range walks {
		p.printf("- [%s](walks/%s.md)\n", w.title, w.file)
	}
	b.programLinks(p)
	stage := ""
	p.printf("\n## Tables\n")
	for _, t := range b.tables {
		if s := tables.Stage(t.name); s != stage {
			stage = s
			p.printf("\n**%s**\n\n", stage)
		}
		p.printf("- [%s](%s.md)%s. %s\n", t.name, t.name, b.numberText(t), sentence(t))
	}
	b.marksPart(p)
	b.files["README.md"] = []byte(p.text.String())
	var svg bytes.Buffer
	err := b.pipes[bookNode].chart.SVG(&svg, diagram.Options{})
	b.files["pipeline.svg"] = svg.Bytes()
	return err
}

func (b *book) numberText(t *table) string {
	if t.variant != nil {
		return ", not in the sample"
	}
	entries := "entries"
	if len(t.entries) == 1 {
		entries = "entry"
	}
	return fmt.Sprintf(", table %d, %d %s", t.number, len(t.entries), entries)
}

// sentence is the first sentence of a table's text, without the table's name.
func sentence(t *table) string {
	s, _, _ := strings.Cut(t.text[0]+" ", ". ")
	s = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(s), t.name+" "), ".") + "."
	return strings.ToUpper(s[:1]) + s[1:]
}

// zonesText lists the conntrack zones of the pipeline.
const zonesText = `
## Conntrack zones

| zone | IPv6 | connections |
|---|---|---|
| %d | %d | all, as Pods and policies see them; the destination of a Service's is translated here |
| %d | %d | those of a Service whose source is translated too, by [SNAT](SNAT.md) |
`

// marksPart lists every named field with its values, the tables that set it and the tables that
// read it.
func (b *book) marksPart(p *page) {
	p.printf(zonesText, tables.CtZone, tables.CtZoneV6, tables.SNATCtZone, tables.SNATCtZoneV6)
	p.printf("\n## Marks\n\nRegisters live as long as the packet's walk, ct_mark and ct_label as long as its connection. A field that no entry of\nthe sample uses has empty columns.\n\n| field | bits | values | set by | read by |\n|---|---|---|---|---|\n")
	for _, f := range tables.Fields() {
		var values []string
		for _, m := range tables.Marks() {
			if m.Field.Name == f.Name {
				values = append(values, fmt.Sprintf("%d %s", m.Value, m.Name))
			}
		}
		u := b.usage[f.Name]
		p.printf("| %s | `%s` | %s | %s | %s |\n", f.Name, place(f), strings.Join(values, "<br>"), p.linked(strings.Join(u.writes, ", "), ""), p.linked(strings.Join(u.reads, ", "), ""))
	}
}
