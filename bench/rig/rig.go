package rig

import (
	"fmt"
	"io"
	"time"

	"github.com/antrail/antrail/bench/report"
)

// Rig is a run of profiles: the options and the time that they share.
type Rig struct {
	Options
	// Progress gets a line for each step.
	Progress io.Writer
	// Until is when the time of the running profile is up.
	Until    time.Time
	more     []*report.Comparison // comparisons of the running profile beside its own
	unwanted []string             // contenders that Options.Contenders leaves out
}

// Say writes a line of progress.
func (r *Rig) Say(format string, args ...any) { fmt.Fprintf(r.Progress, format+"\n", args...) }

// AddComparison adds a comparison to that of the running profile; nil adds none.
func (r *Rig) AddComparison(c *report.Comparison) {
	if c != nil {
		r.more = append(r.more, c)
	}
}

// TakeComparisons returns the comparisons that the running profile has added, and forgets them.
func (r *Rig) TakeComparisons() []*report.Comparison {
	more := r.more
	r.more = nil
	return more
}

// Warn says that figures are doubtful if other programs use too much of the processors.
func (r *Rig) Warn(when string, foreign float64) {
	if foreign > busyMachine {
		r.Say("warning: other programs took %.0f %% of the processors %s: figures are doubtful", 100*foreign, when)
	}
}

// busyMachine is the part of the processors that other programs may use without a warning.
const busyMachine = 0.1
