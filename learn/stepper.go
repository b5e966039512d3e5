package learn

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/antrail/antrail/flow"
)

// Stepper shows a way table by table. Before each table it waits for a line of In: Enter
// goes on, q ends it. At the end of In it goes on by itself.
type Stepper struct {
	In  *bufio.Reader
	Out io.Writer
	// Ask is the prompt for a person; "" for a program that writes lines.
	Ask string
}

// Show shows a way. It returns false if the reader ended it.
func (s *Stepper) Show(box *Sandbox, w *Way) (on bool, err error) {
	fmt.Fprintln(s.Out, w.Packet)
	for i := range w.Hops {
		h := &w.Hops[i]
		n, err := box.node(h.Node)
		if err != nil {
			return false, err
		}
		fmt.Fprintf(s.Out, "%s, in by %s\n", h.Node, h.Trace.Names.Port(h.Trace.Live.Port))
		for _, v := range visits(h.Trace) {
			s.before(&v, n.program)
			if !s.wait() {
				return false, nil
			}
			fmt.Fprintln(s.Out, strings.Join(v.lines(h.Trace.Names), "\n"))
		}
	}
	_, err = fmt.Fprintf(s.Out, "\nSo: %s\n", w.Ending())
	return true, err
}

// before shows the packet that a table will see, and the entries that may match it.
func (s *Stepper) before(v *visit, p *flow.Program) {
	fmt.Fprintf(s.Out, "\n%s sees\n    %s\n", v.table, flow.KeyText(&v.key, p.Names))
	texts, rest := v.candidates(p)
	for _, t := range texts {
		fmt.Fprintf(s.Out, "    %s\n", t)
	}
	if rest > 0 {
		fmt.Fprintf(s.Out, "    and %d that do not match by more\n", rest)
	}
}

// wait waits for a line, and returns false for q.
func (s *Stepper) wait() bool {
	fmt.Fprint(s.Out, s.Ask)
	text, _ := s.In.ReadString('\n')
	return strings.TrimSpace(text) != "q"
}
