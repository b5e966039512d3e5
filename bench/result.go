package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// Result is what a run of the rig found, and all that is needed to judge it.
type Result struct {
	Machine Machine   `json:"machine"`
	Began   time.Time `json:"began"`
	// Took is the seconds of the whole run.
	Took float64 `json:"took"`
	// LoadAfter is the load average of the last minute when the run was over;
	// that of before it is the Machine's.
	LoadAfter float64 `json:"loadAfter"`
	// ForeignAfter is the part of the processors that other programs took then.
	ForeignAfter float64       `json:"foreignAfter"`
	Options      Options       `json:"options"`
	Comparisons  []*Comparison `json:"comparisons"`
}

// begin is a result that begins now.
func begin(o Options) *Result {
	return &Result{Began: time.Now().UTC(), Machine: inspect(), Options: o}
}

// end notes what is known when a run is over.
func (r *Result) end() {
	r.LoadAfter, r.ForeignAfter = loadAverage(), foreignLoad()
	r.Took = time.Since(r.Began).Seconds()
}

// Write writes the result in one of Formats.
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

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// Save writes bench.json, bench.md and a plot of each profile, PROFILE.svg,
// into a directory, which is made if it is not there. A run that found nothing leaves
// what is there, with an error.
func (r *Result) Save(dir string) error {
	if len(r.Comparisons) == 0 {
		return fmt.Errorf("%s: nothing is saved, for no round was whole", dir)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	errs := []error{
		save(filepath.Join(dir, "bench.json"), func(w io.Writer) error { return r.Write(w, "json") }),
		save(filepath.Join(dir, "bench.md"), func(w io.Writer) error { return r.Write(w, "markdown") }),
	}
	for _, c := range r.Comparisons {
		errs = append(errs, save(filepath.Join(dir, c.Profile+".svg"), c.Plot))
	}
	return errors.Join(errs...)
}

func save(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

// Load reads the JSON of a Result; a directory stands for its bench.json.
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
		return nil, fmt.Errorf("%s: there are no comparisons: it is of no run of antrail bench with a whole round", path)
	}
	for _, c := range r.Comparisons {
		if err := c.check(); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return r, nil
}

// check says whether every line has a place for every side.
func (c *Comparison) check() error {
	if c == nil {
		return errors.New("a comparison is null")
	}
	for _, l := range c.Lines {
		if len(l.Reached) > len(c.Sides) {
			return fmt.Errorf("%s: %q has figures of %d sides, and there are %d", c.Profile, l.Name, len(l.Reached), len(c.Sides))
		}
	}
	return nil
}
