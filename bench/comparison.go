package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// Comparison is what several sides reached in many respects: a line for each
// respect, a column for each side.
type Comparison struct {
	Title string `json:"title"`
	// Machine is processor, kernel and Go version.
	Machine string   `json:"machine"`
	Sides   []string `json:"sides"`
	Lines   []Line   `json:"lines"`
	// Notes say what was compared, and what is not there.
	Notes []string `json:"notes"`
}

// Line is one respect, and what each of the sides reached.
type Line struct {
	Name string `json:"name"`
	Unit string `json:"unit"`
	// Reached is by side; nil for a side without this figure.
	Reached []*Spread `json:"reached"`
}

// Spread is the figures of several rounds.
type Spread struct {
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	Max    float64 `json:"max"`
	Rounds int     `json:"rounds"`
}

// spread sums a series up; nil when there is none.
func (s series) spread() *Spread {
	if len(s) == 0 {
		return nil
	}
	return &Spread{slices.Min(s), s.median(), slices.Max(s), len(s)}
}

// Formats are the forms in which a Comparison can be written.
var Formats = []string{"text", "json", "markdown"}

// CheckFormat says whether a format is one of Formats.
func CheckFormat(format string) error {
	if !slices.Contains(Formats, format) {
		return fmt.Errorf("bench: %q is no format: %s are", format, strings.Join(Formats, ", "))
	}
	return nil
}

// Write writes the comparison in one of Formats.
func (c *Comparison) Write(w io.Writer, format string) error {
	switch format {
	case "json":
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(c)
	case "markdown":
		return c.writeMarkdown(w)
	case "text":
		return c.writeText(w)
	}
	return CheckFormat(format)
}

func (c *Comparison) writeText(w io.Writer) error {
	fmt.Fprintf(w, "%s\n%s\n\n%-60s %-10s", c.Title, c.Machine, "median (min to max)", "unit")
	for _, side := range c.Sides {
		fmt.Fprintf(w, " %30s", side)
	}
	fmt.Fprintln(w)
	for _, l := range c.Lines {
		fmt.Fprintf(w, "%-60s %-10s", l.Name, l.Unit)
		for _, s := range l.Reached {
			fmt.Fprintf(w, " %30s", s)
		}
		fmt.Fprintln(w)
	}
	for _, note := range c.Notes {
		fmt.Fprintf(w, "\n%s\n", note)
	}
	return nil
}

func (c *Comparison) writeMarkdown(w io.Writer) error {
	fmt.Fprintf(w, "%s. %s.\n\n| median (min to max) | unit | %s |\n|---|---|%s\n",
		c.Title, c.Machine, strings.Join(c.Sides, " | "), strings.Repeat("---|", len(c.Sides)))
	for _, l := range c.Lines {
		fmt.Fprintf(w, "| %s | %s |", l.Name, l.Unit)
		for _, s := range l.Reached {
			fmt.Fprintf(w, " %s |", s)
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w)
	for _, note := range c.Notes {
		fmt.Fprintf(w, "- %s\n", note)
	}
	return nil
}

// String is the median, and the extremes if they differ; a dash for a figure
// that there is not.
func (s *Spread) String() string {
	switch {
	case s == nil:
		return "-"
	case s.Min == s.Max:
		return digits(s.Median)
	}
	return fmt.Sprintf("%s (%s to %s)", digits(s.Median), digits(s.Min), digits(s.Max))
}

// digits writes three significant digits, and all before the point.
func digits(v float64) string {
	decimals := 0
	for limit := 100.0; decimals < 3 && v < limit && v > -limit; limit /= 10 {
		decimals++
	}
	return strconv.FormatFloat(v, 'f', decimals, 64)
}

// machine is what the figures were taken on.
func machine() string {
	return fmt.Sprintf("%s, %d CPUs, %s, %s", processor(), runtime.NumCPU(), kernelRelease(), runtime.Version())
}

// processor is the name that the kernel gives for the first processor.
func processor() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

// residentMemory is the bytes of a process that lie in memory, shared ones too;
// pid may be "self".
func residentMemory(pid string) (float64, error) {
	text, err := os.ReadFile("/proc/" + pid + "/statm")
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0, errors.New("/proc/" + pid + "/statm has no second field")
	}
	pages, err := strconv.ParseFloat(fields[1], 64)
	return pages * float64(os.Getpagesize()), err
}
