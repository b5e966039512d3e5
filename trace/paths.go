package trace

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Paths: packets with the same way, by the same entries to the same end, are one
// line with their number.

type paths struct {
	w     io.Writer
	all   []*pathCount // in order of appearance
	byKey map[string]*pathCount
}

// pathCount is a way and its number of packets.
type pathCount struct {
	key     string
	packets int
	first   Joined
}

// Print implements Printer.
func (p *paths) Print(way Joined) error {
	if p.byKey == nil {
		p.byKey = map[string]*pathCount{}
	}
	key := way.path()
	c := p.byKey[key]
	if c == nil {
		c = &pathCount{key: key, first: way}
		p.byKey[key] = c
		p.all = append(p.all, c)
	}
	c.packets++
	return nil
}

// End implements Printer. It prints the most frequent way first.
func (p *paths) End() error {
	slices.SortStableFunc(p.all, func(a, b *pathCount) int { return b.packets - a.packets })
	var b strings.Builder
	for _, c := range p.all {
		fmt.Fprintf(&b, "%d× first %s\n%s\n", c.packets, Summary(c.first[0].Frame), c.key)
	}
	_, err := io.WriteString(p.w, b.String())
	return err
}

// path is the packet's entries, Node by Node, and its end.
func (j Joined) path() string {
	var b strings.Builder
	for _, w := range j {
		fmt.Fprintf(&b, "  %s%s", strings.TrimLeft(w.Node+": ", ": "), w.InPort)
		for i := range w.Steps {
			switch s := &w.Steps[i]; {
			case s.Kind == StepEntry && s.Entry == nil:
				fmt.Fprintf(&b, " → %s no entry", s.Table)
			case s.Kind == StepEntry:
				fmt.Fprintf(&b, " → %s %s", s.Table, matchText(s.Entry))
			case s.Kind == StepBucket:
				fmt.Fprintf(&b, " → group %d bucket %d", s.Bucket.Group, s.Bucket.Bucket)
			}
		}
		fmt.Fprintf(&b, " → %s\n", w.Verdict.Text)
	}
	return b.String()
}

// matchText is an entry's match and priority.
func matchText(e *Entry) string {
	if e.Match == "" {
		return fmt.Sprintf("[%d]", e.Priority)
	}
	return fmt.Sprintf("[%d %s]", e.Priority, e.Match)
}
