package main

import (
	"bytes"
	"strings"

	"github.com/antrail/antrail/diagram"
	"github.com/antrail/antrail/tables"
)

// tablePage writes a table's page and its place on the map.
func (b *book) tablePage(t *table) error {
	p := &page{book: b}
	p.printf("# %s\n\n%s\n\n", t.name, b.neighbours(t))
	if err := b.drawTable(t); err != nil {
		return err
	}
	p.printf("![Where %s is on the map](%s.svg)\n\n", t.name, t.name)
	for _, text := range t.text {
		p.printf("%s\n\n", b.linked(text, t.name))
	}
	for _, l := range t.labels {
		p.printf("- **%s:** %s\n", l[0], b.linked(l[1], t.name))
	}
	for _, text := range t.more {
		p.printf("\n%s\n", b.linked(text, t.name))
	}
	p.marksTable(t)
	if err := p.entriesPart(t); err != nil {
		return err
	}
	if links := b.passed[t.name]; len(links) > 0 {
		p.printf("\n## Walks that pass here\n\n- %s\n", strings.Join(links, "\n- "))
	}
	p.codePart(t)
	b.files[t.name+".md"] = []byte(p.text.String())
	return nil
}

// neighbours writes the stage, and links to the pages before and after.
func (b *book) neighbours(t *table) string {
	s := "Stage " + tables.Stage(t.name) + " · [all tables](README.md)"
	for i, x := range b.tables {
		if x != t {
			continue
		}
		if i > 0 {
			s += " · before: [" + b.tables[i-1].name + "](" + b.tables[i-1].name + ".md)"
		}
		if i+1 < len(b.tables) {
			s += " · after: [" + b.tables[i+1].name + "](" + b.tables[i+1].name + ".md)"
		}
	}
	return s
}

func (b *book) drawTable(t *table) error {
	var svg bytes.Buffer
	err := t.pipe.chart.SVG(&svg, diagram.Options{Focus: t.name, Bare: true})
	b.files[t.name+".svg"] = svg.Bytes()
	return err
}

// marksTable lists the tables that set the marks that the table reads, and the tables that read
// its own.
func (p *page) marksTable(t *table) {
	p.side(t, "Marks that it reads", "reads", "set by", reads, writes, "no table: the packet or conntrack brings it")
	p.side(t, "Marks that it sets", "sets", "read by", writes, reads, "no table: it is for traces, the agent, or the next packet")
}

// side writes one of the two lists.
func (p *page) side(t *table, title, does, by string, mine, theirs func(*uses) []string, nobody string) {
	fields := p.usage.of(t.name, mine)
	if len(fields) == 0 {
		return
	}
	p.printf("\n## %s\n\n| %s | %s | %s |\n|---|---|---|\n", title, does, "bits", by)
	for _, f := range fields {
		others := p.usage.others(f, t.name, theirs)
		text := nobody
		if len(others) > 0 {
			text = p.linked(strings.Join(others, ", "), "")
		}
		p.printf("| %s | `%s` | %s |\n", f.Name, place(f), text)
	}
}

// entriesPart is the table's entries on bookNode, and their groups.
func (p *page) entriesPart(t *table) error {
	p.printf("\n## Entries\n\nEntries of %s in [%s](../../%s), table %d, the highest priority first.", bookNode, objects, objects, t.number)
	if t.variant != nil {
		p.printf(" In the sample, %s has no such table. Here its NodeConfig has %s.", bookNode, t.variant.told)
	}
	p.printf("\n\n")
	if err := p.entryList(t); err != nil {
		return err
	}
	if err := p.groupList(t); err != nil {
		return err
	}
	if t.variant != nil {
		return nil
	}
	p.printf("\nThe same at a prompt:\n\n```sh\nbin/antrail dump-flows %s --names --no-stats --manifests %s --node %s\n```\n", t.name, objects, bookNode)
	return nil
}

// shared are files that make entries for several tables.
var shared = map[string]string{
	"EgressRule": "policy_rule.go", "IngressRule": "policy_rule.go", "EgressDefaultRule": "policy_rule.go", "IngressDefaultRule": "policy_rule.go",
	"AntreaPolicyEgressRule": "policy_rule.go", "AntreaPolicyIngressRule": "policy_rule.go",
	"EgressMetric": "policy_metric.go", "IngressMetric": "policy_metric.go",
	"ServiceLB": "service_lb.go", "Output": "packetin.go",
}

// codePart links to the code.
func (p *page) codePart(t *table) {
	p.printf("\n## Code\n\n[`%s`](../../%s)", t.file, t.file)
	if s := "tables/" + shared[t.name]; shared[t.name] != "" && s != t.file {
		p.printf(", [`%s`](../../%s)", s, s)
	}
	p.printf(" makes the entries; [`tables/objects.go`](../../tables/objects.go) has the entries of each object; [`tables/pipeline.go`](../../tables/pipeline.go) has the order, the stages and the table-misses.\n")
	if len(t.functions) == 0 {
		return
	}
	p.printf("\n")
	for _, f := range t.functions {
		p.printf("- `%s`: %s\n", f.name, strings.TrimPrefix(strings.TrimPrefix(f.text, f.name+": "), f.name+" "))
	}
}
