package api

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/antrail/antrail/trace"
)

// The answer as text: the sentence, where the packet goes, earlier packets of these ends and of
// the last entry, and what to do next.

// WriteText writes three to six lines, and the notes.
func (a *WhyAnswer) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintln(&b, a.Sentence)
	for _, l := range a.lines() {
		fmt.Fprintf(&b, "%-8s%s\n", l[0]+":", l[1])
	}
	for _, n := range a.Notes {
		fmt.Fprintln(&b, "note:  ", n)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteWalks writes the walk of each way.
func (a *WhyAnswer) WriteWalks(w io.Writer) error {
	for i := range a.Ways {
		way := &a.Ways[i]
		if _, err := fmt.Fprintln(w); err != nil {
			return err
		}
		if len(a.Ways) > 1 {
			fmt.Fprintf(w, "%s: %s\n", way.Endpoint, way.Sentence)
		}
		if err := trace.WriteTree(w, way.Walks); err != nil {
			return err
		}
	}
	return nil
}

// lines are the lines below the sentence, each with its heading.
func (a *WhyAnswer) lines() (all [][2]string) {
	w := a.deciding()
	if w == nil {
		return nil
	}
	all = append(all, [2]string{"where", w.where()})
	var entry []string
	if w.Entry != nil {
		entry = append(entry, w.Entry.text())
	}
	if w.Met != nil {
		entry = append(entry, w.Met.text())
	}
	if entry != nil {
		all = append(all, [2]string{"entry", strings.Join(entry, "; ")})
	}
	if a.Seen != nil {
		all = append(all, [2]string{"so far", a.Seen.text()})
	}
	advice := w.Advice
	if w.Unasked != nil {
		advice = "ask " + strings.Join(w.Unasked, " and ") + " too: give the socket of its agent by --socket, given again, or all objects by --manifests"
	}
	if advice == "" && w.Denied == "" && w.Open == "" {
		advice = "if it still fails, run antrail drops on each Node of the way, then antrail trace --live during a try"
	}
	return append(all, [2]string{"next", cmp.Or(advice, "antrail trace --live shows real packets as they pass")})
}

// deciding is the way that the sentence is about: the first denied one, otherwise the first
// undecided one, otherwise the first. nil without ways.
func (a *WhyAnswer) deciding() (found *WhyWay) {
	for i := range a.Ways {
		switch w := &a.Ways[i]; {
		case w.Denied != "":
			return w
		case found == nil, !found.undecided() && w.undecided():
			found = w
		}
	}
	return found
}

func (w *WhyWay) undecided() bool { return w.Unasked != nil || w.Open != "" }

// where is the way from port to port, and its last entry.
func (w *WhyWay) where() string {
	var parts []string
	for _, walk := range w.Walks {
		node := ""
		if walk.Node != "" {
			node = "Node " + walk.Node + ", "
		}
		parts = append(parts, fmt.Sprintf("%sfrom %s to %s", node, portName(walk.InPort), w.end(walk)))
	}
	return strings.Join(parts, "; ")
}

// end is the end of a walk: ports, or a table with its entry.
func (w *WhyWay) end(walk *trace.Walk) string {
	var names []string
	for _, p := range walk.Verdict.Outputs {
		names = append(names, portName(p))
	}
	switch {
	case names != nil:
		return strings.Join(names, " and ")
	case w.Denied == "" && w.Open == "": // for the Node itself: its kernel takes the packet before the switch
		return portName(walk.InPort)
	}
	for i := len(walk.Steps) - 1; i >= 0; i-- {
		switch s := &walk.Steps[i]; {
		case s.Kind != trace.StepEntry:
		case s.Entry == nil:
			return "table " + s.Table + ", which has no entry for it"
		default:
			return "table " + s.Table + ", entry " + entryShort(s.Entry)
		}
	}
	return walk.Verdict.Text
}

func portName(p trace.Port) string { return cmp.Or(p.Name, fmt.Sprintf("port %d", p.No)) }
