package rig

import (
	"fmt"
	"io"
)

// Compare writes how the figures of b differ from those of a, in the way of benchstat. It is an error
// if they have no figure in common. See report.Comparison.WriteChanges.
func Compare(w io.Writer, a, b *Result) error {
	fmt.Fprintf(w, "a: %s\nb: %s\n", a.heading(), b.heading())
	if a.Machine.String() != b.Machine.String() {
		fmt.Fprintln(w, "The machines differ: a change may be theirs.")
	}
	figures, changed := 0, 0
	for _, c := range a.Comparisons {
		for _, d := range b.Comparisons {
			if c.Profile != d.Profile {
				continue
			}
			n, sure := c.WriteChanges(w, d)
			figures += n
			changed += sure
		}
	}
	if figures == 0 {
		return fmt.Errorf("bench: the two results have no figure in common")
	}
	fmt.Fprintf(w, "\n%d of %d figures changed by more than chance explains (p below 0.05); ~ may be chance. Of so many, about %.0f seem to change when nothing has.\n",
		changed, figures, 0.05*float64(figures))
	return nil
}

// heading says when and where a result was measured, and how much other programs disturbed it.
func (r *Result) heading() string {
	return fmt.Sprintf("%s, %s; others took %.0f %% of the processors before and %.0f %% after",
		r.Began.Format("2006-01-02 15:04"), r.Machine, 100*r.Machine.Foreign, 100*r.ForeignAfter)
}
