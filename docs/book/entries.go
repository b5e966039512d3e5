package main

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables"
	"github.com/antrail/antrail/tables/layout"
)

// Entries, numbered and explained. Each has its line of a dump and the marks that its bits mean.
// It also has the owners of its addresses, and the objects that made it.

// entryList writes a table's entries.
func (b *page) entryList(t *table) error {
	p := t.pipe
	for i, e := range t.entries {
		origins, err := p.origins(strings.TrimSpace(e.Text(flow.Format{Names: p.program.Names})))
		if err != nil {
			return err
		}
		b.printf("%d. %s<br>\n   → %s<br>\n", i+1, code(entryHead(p, e)), code(actionsText(p, e.Actions)))
		marks := b.meaning(t, p, e)
		if marks != "" {
			b.printf("   %s<br>\n", marks)
		}
		if what := b.known.of(entryHead(p, e)+" "+actionsText(p, e.Actions)+" "+marks, originText(origins)); what != "" {
			b.printf("   %s<br>\n", what)
		}
		b.printf("   for %s\n", originText(origins))
	}
	return nil
}

// entryHead is an entry's priority and match.
func entryHead(p *pipe, e *flow.Entry) string {
	return strings.TrimSuffix(fmt.Sprintf("priority=%d,%s", e.Priority, e.Match.Text(p.program.Names)), ",")
}

func actionsText(p *pipe, actions []flow.Action) string {
	return cmp.Or(flow.ActionsText(actions, flow.Format{Names: p.program.Names}), "drop")
}

// meaning is the marks that an entry examines and sets, by name.
func (b *page) meaning(t *table, p *pipe, e *flow.Entry) string {
	var parts []string
	if asks := texts(examinedBits(e.Match), t.tableSource, p); len(asks) > 0 {
		parts = append(parts, "asks for "+strings.Join(asks, ", "))
	}
	var x effect
	x.actions(p, withoutGroups(e.Actions))
	if sets := texts(x.writes, t.tableSource, p); len(sets) > 0 {
		parts = append(parts, "sets "+strings.Join(sets, ", "))
	}
	return strings.Join(parts, "; ")
}

// withoutGroups leaves out the part that only the groups' section has.
func withoutGroups(actions []flow.Action) []flow.Action {
	return slices.DeleteFunc(slices.Clone(actions), func(a flow.Action) bool {
		_, is := a.(flow.GroupAction)
		return is
	})
}

// texts are the marks that bits mean, each once.
func texts(all []layout.Bits, s *tableSource, p *pipe) (out []string) {
	for _, b := range all {
		for _, n := range namesOf(b, s) {
			out = added(out, tables.Program.Marks.Text(n, p.names()))
		}
	}
	return out
}

// mostOrigins is how many objects of an entry are named.
const mostOrigins = 3

// originText names the objects of an entry. Entries that every Node has belong to its NodeConfig.
func originText(all []api.OriginText) string {
	var names []string
	for _, o := range all {
		names = added(names, o.String())
	}
	return someOf(names)
}

// someOf returns the first of some names, and how many more there are.
func someOf(names []string) string {
	if more := len(names) - mostOrigins; more > 0 {
		return strings.Join(names[:mostOrigins], "; ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(names, "; ")
}

// groupList writes the groups that a table's entries name, with their objects.
func (b *page) groupList(t *table) error {
	p := t.pipe
	ids := groupsOf(t.entries)
	if len(ids) == 0 {
		return nil
	}
	b.printf("\n## Groups\n\nA `select` group chooses one bucket for each connection. An `all` group sends a copy to each bucket.\n\n")
	for _, id := range ids {
		text := p.groups[id].Text(p.program.Names)
		origins, err := p.origins(text)
		if err != nil {
			return err
		}
		b.printf("- %s<br>\n  for %s\n", code(strings.TrimSpace(text)), originText(origins))
	}
	return nil
}

func groupsOf(entries []*flow.Entry) (ids []uint32) {
	for _, e := range entries {
		for _, a := range e.Actions {
			if g, ok := a.(flow.GroupAction); ok && !slices.Contains(ids, g.ID) {
				ids = append(ids, g.ID)
			}
		}
	}
	slices.Sort(ids)
	return ids
}

// page is a page that is being written.
type page struct {
	*book
	text strings.Builder
}

func (b *page) printf(format string, args ...any) { fmt.Fprintf(&b.text, format, args...) }

// code writes a text as Markdown's code.
func code(text string) string { return "`" + strings.ReplaceAll(text, "`", "'") + "`" }

var word = regexp.MustCompile(`[A-Za-z0-9]+`)

// linked puts links to the tables that a text names, except one.
func (b *book) linked(text, but string) string {
	return word.ReplaceAllStringFunc(text, func(w string) string {
		if b.sources[w] == nil || w == but || w == "IPv6" {
			return w
		}
		return fmt.Sprintf("[%s](%s.md)", w, w)
	})
}
