package rig

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/antrail/antrail/bench/report"
)

// Run is a saved result with the name that it was saved under.
type Run struct {
	Name string
	*Result
}

// LoadRuns reads all results in a directory, the oldest first: the bench.json of each directory below it, and each
// file NAME.json. Any other content of such a file is an error.
func LoadRuns(dir string) (runs []Run, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		path, name := filepath.Join(dir, e.Name()), e.Name()
		if e.IsDir() {
			if _, err := os.Stat(filepath.Join(path, "bench.json")); errors.Is(err, fs.ErrNotExist) {
				continue
			}
		} else {
			var isJSON bool
			if name, isJSON = strings.CutSuffix(name, ".json"); !isJSON {
				continue
			}
		}
		r, err := Load(path)
		if err != nil {
			return nil, err
		}
		runs = append(runs, Run{name, r})
	}
	if len(runs) < 2 {
		return nil, fmt.Errorf("%s: a trend needs two results, and there are %d; antrail bench --save %s writes one", dir, len(runs), filepath.Join(dir, "NAME"))
	}
	slices.SortStableFunc(runs, func(a, b Run) int { return a.Began.Compare(b.Began) })
	return runs, nil
}

// Trends are the trends of all profiles of runs. Each run has the name that it was saved under.
func Trends(runs []Run) []*report.Trend {
	var labels []string
	var all [][]*report.Comparison
	for _, r := range runs {
		labels, all = append(labels, r.Name), append(all, r.Comparisons)
	}
	return report.Trends(labels, all)
}

// WriteTrend writes which runs there are, and a table for each profile.
func WriteTrend(w io.Writer, runs []Run) error {
	for _, r := range runs {
		fmt.Fprintf(w, "%s: %s; %s\n", r.Name, r.Build, r.heading())
	}
	if slices.ContainsFunc(runs, func(r Run) bool { return r.Machine.String() != runs[0].Machine.String() }) {
		fmt.Fprintln(w, "The machines differ, and may be the reason for a change.")
	}
	for _, t := range Trends(runs) {
		fmt.Fprintln(w)
		if err := t.Write(w); err != nil {
			return err
		}
	}
	return nil
}

// SaveTrend writes a plot trend-PROFILE.svg of each profile into a directory.
func SaveTrend(dir string, runs []Run) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var errs []error
	for _, t := range Trends(runs) {
		errs = append(errs, saveFile(filepath.Join(dir, "trend-"+t.Profile+".svg"), t.Plot))
	}
	return errors.Join(errs...)
}
