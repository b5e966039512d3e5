package listing

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/antrail/antrail/agent/api"
)

// Print prints the items that the options select. The error names what does not exist.
func (v *View) Print(w io.Writer, l *api.Listing) error {
	items, err := v.choose(l.Items)
	if err != nil {
		return err
	}
	return v.print(w, l.Columns, items)
}

// Watch prints the items that the options select, and then every object that came, changed or
// went. It ignores changed counters. Watch waits for names that do not exist yet. It
// returns nil when ctx ends, and the first error of ask. pause returns true when it is time to
// ask again, false when ctx is done.
func (v *View) Watch(ctx context.Context, w io.Writer, ask func(context.Context) (*api.Listing, error), pause func(context.Context) bool) error {
	names := v.Names
	var seen map[string]string // lines without counters, by object
	var last map[string]api.Item
	for {
		l, err := ask(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		v.Names = namesThere(names, l.Items)
		items, err := v.choose(l.Items)
		if err != nil {
			return err
		}
		now, there := map[string]string{}, map[string]api.Item{}
		var changed []api.Item
		for _, i := range items {
			k := i.Object + "/" + i.Name
			now[k], there[k] = states(l.Columns, i.Lines), i
			if before, known := seen[k]; !known || before != now[k] {
				changed = append(changed, i)
			}
		}
		changed = append(changed, v.gone(l.Columns, last, there)...)
		if len(changed) > 0 || seen == nil {
			if err := v.print(w, l.Columns, changed); err != nil {
				return err
			}
		}
		if seen, last = now, there; !pause(ctx) {
			return nil
		}
	}
}

// Every pauses for a time.
func Every(d time.Duration) func(context.Context) bool {
	return func(ctx context.Context) bool {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(d):
			return true
		}
	}
}

// namesThere are the names that some item has. nil stays nil, which selects all.
func namesThere(names []string, all []api.Item) []string {
	if names == nil {
		return nil
	}
	there := []string{}
	for _, n := range names {
		if slices.ContainsFunc(all, func(i api.Item) bool { return isNamed(&i, n) }) {
			there = append(there, n)
		}
	}
	return there
}

// states are lines without their counters.
func states(columns []api.Column, lines [][]string) string {
	var b strings.Builder
	for _, l := range lines {
		for i, cell := range l {
			if i < len(columns) && columns[i].Counter {
				continue
			}
			b.WriteString(cell + "\t")
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// gone are earlier items that no longer exist, with state "gone". Forms without columns leave
// them out.
func (v *View) gone(columns []api.Column, before, there map[string]api.Item) (all []api.Item) {
	if v.Output != "text" && v.Output != "wide" {
		return nil
	}
	for k, i := range before {
		if _, is := there[k]; is {
			continue
		}
		i.Lines = slices.Clone(i.Lines)
		for n := range i.Lines {
			i.Lines[n] = slices.Clone(i.Lines[n])
			if at := slices.IndexFunc(columns, func(c api.Column) bool { return c.Name == "STATE" }); at >= 0 {
				i.Lines[n][at] = "gone"
			}
		}
		all = append(all, i)
	}
	slices.SortFunc(all, func(a, b api.Item) int { return strings.Compare(a.Object+a.Name, b.Object+b.Name) })
	return all
}
