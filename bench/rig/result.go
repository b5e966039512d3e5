package rig

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/antrail/antrail/bench/report"
	"github.com/antrail/antrail/bench/sched"
)

// Result has the figures of a run, and the facts that a reader needs to judge them.
type Result struct {
	Build
	// Machine is the machine before the run.
	Machine Machine `json:"machine"`
	// Began is when the run began.
	Began time.Time `json:"began"`
	// Took is how long the run took, in seconds.
	Took float64 `json:"took"`
	// LoadAfter is the load average of the last minute after the run. Machine has that before it.
	LoadAfter float64 `json:"loadAfter"`
	// ForeignAfter is the part of the processors that other programs used after the run, from 0 to 1.
	ForeignAfter float64 `json:"foreignAfter"`
	// Options are those of the run, with defaults set.
	Options Options `json:"options"`
	// Comparisons are what the profiles found.
	Comparisons []*report.Comparison `json:"comparisons"`
}

// NewResult begins a result: it notes the time and looks at the machine, for half a second.
func NewResult(o Options) *Result {
	return &Result{Build: thisBuild(), Began: time.Now().UTC(), Machine: inspectMachine(), Options: o}
}

// Finish notes the load and the time when the run is over.
func (r *Result) Finish() {
	r.LoadAfter, r.ForeignAfter = loadAverage(), sched.ForeignLoad()
	r.Took = time.Since(r.Began).Seconds()
	if foreign := max(r.Machine.Foreign, r.ForeignAfter); foreign > busyMachine {
		for _, c := range r.Comparisons {
			c.Warning = fmt.Sprintf("The machine was busy: other programs took %.0f %% of the processors. The figures are doubtful.", 100*foreign)
		}
	}
}

// Write writes the result in one of report.Formats.
func (r *Result) Write(w io.Writer, format string) error {
	if format == "json" {
		return writeJSON(w, r)
	}
	for i, c := range r.Comparisons {
		if i > 0 {
			fmt.Fprintln(w)
		}
		if format == "markdown" {
			fmt.Fprintf(w, "## %s\n\n", c.Profile)
		}
		if err := c.Write(w, format); err != nil {
			return err
		}
	}
	fmt.Fprintf(w, "\n%s\n", r.Machine.facts(r.LoadAfter, r.ForeignAfter))
	return nil
}

// writeJSON writes a value as indented JSON.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// Save writes bench.json, bench.md and a plot PROFILE.svg of each comparison into a directory. It makes
// the directory if needed. A result without comparisons is an error, and writes nothing.
func (r *Result) Save(dir string) error {
	if len(r.Comparisons) == 0 {
		return fmt.Errorf("%s: nothing is saved, because no round was complete", dir)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	errs := []error{
		saveFile(filepath.Join(dir, "bench.json"), func(w io.Writer) error { return r.Write(w, "json") }),
		saveFile(filepath.Join(dir, "bench.md"), func(w io.Writer) error { return r.Write(w, "markdown") }),
	}
	for _, c := range r.Comparisons {
		errs = append(errs, saveFile(filepath.Join(dir, c.Profile+".svg"), c.Plot))
	}
	return errors.Join(errs...)
}

// saveFile creates a file and writes it.
func saveFile(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

// Load reads a result from a JSON file, or from the bench.json of a directory.
func Load(path string) (*Result, error) {
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		path = filepath.Join(path, "bench.json")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := new(Result)
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(r.Comparisons) == 0 {
		return nil, fmt.Errorf("%s: there are no comparisons; want the result of antrail bench with a complete round", path)
	}
	for _, c := range r.Comparisons {
		if err := c.Check(); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return r, nil
}
