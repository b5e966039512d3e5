package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Comparison is what several sides reached in many respects: a line for each
// respect, a column for each side.
type Comparison struct {
	// Profile is the name under which the bench command knows it.
	Profile string `json:"profile"`
	Title   string `json:"title"`
	// Machine is processor, kernel and Go version.
	Machine string `json:"machine"`
	// Axis is what X of the lines counts, where something is swept.
	Axis string `json:"axis,omitempty"`
	// Grid says that sides are no contenders: the plot has a column for each and a
	// row for each line, which have one unit, and not bars beneath each other.
	Grid  bool     `json:"grid,omitempty"`
	Sides []string `json:"sides"`
	Lines []Line   `json:"lines"`
	// Notes say what was compared, and what is not there.
	Notes []string `json:"notes"`
}

// Line is one respect, and what each of the sides reached.
type Line struct {
	Name string `json:"name"`
	Unit string `json:"unit"`
	// X is how much there was of what a sweep varies, 0 in no sweep. Lines of a
	// sweep that differ in X only have the same name.
	X float64 `json:"x,omitempty"`
	// Sum says that it is made of the other lines of a grid, which does not show it.
	Sum bool `json:"sum,omitempty"`
	// Reached is by side; nil for a side without this figure.
	Reached []*Spread `json:"reached"`
}

// Spread is the figures of several rounds.
type Spread struct {
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	Max    float64 `json:"max"`
	Rounds int     `json:"rounds"`
	// Ratio is the median of the rounds' ratios to the first side's figure of the
	// same round, 0 where there is none. It is not the ratio of the medians.
	Ratio float64 `json:"ratio,omitempty"`
	// Values are the figures themselves, round by round.
	Values []float64 `json:"values"`
}

// spread sums a series up; nil when there is none.
func (s series) spread() *Spread {
	if len(s) == 0 {
		return nil
	}
	return &Spread{Min: slices.Min(s), Median: s.median(), Max: slices.Max(s), Rounds: len(s), Values: s}
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
	fmt.Fprintf(w, "%s\n%s\n\n%-60s %-10s", c.Title, c.Machine, "median (min to max), ratio to the first", "unit")
	for _, side := range c.Sides {
		fmt.Fprintf(w, " %30s", side)
	}
	fmt.Fprintln(w)
	for _, l := range c.Lines {
		fmt.Fprintf(w, "%-60s %-10s", l.label(), l.Unit)
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
	fmt.Fprintf(w, "%s. %s.\n\n| median (min to max), ratio to the first | unit | %s |\n|---|---|%s\n",
		c.Title, c.Machine, strings.Join(c.Sides, " | "), strings.Repeat("---|", len(c.Sides)))
	for _, l := range c.Lines {
		fmt.Fprintf(w, "| %s | %s |", l.label(), l.Unit)
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

// label is the name, and how much there was in a sweep.
func (l *Line) label() string {
	if l.X == 0 {
		return l.Name
	}
	return fmt.Sprintf("%s, %.0f", l.Name, l.X)
}

// String is the median, the extremes if they differ, and the ratio to the first
// side; a dash for a figure that there is not.
func (s *Spread) String() string {
	if s == nil {
		return "-"
	}
	text := digits(s.Median)
	if s.Min != s.Max {
		text += fmt.Sprintf(" (%s to %s)", digits(s.Min), digits(s.Max))
	}
	if s.Ratio != 0 {
		text += " ×" + digits(s.Ratio)
	}
	return text
}

// digits writes three significant digits, and all before the point.
func digits(v float64) string {
	decimals := 0
	for limit := 100.0; decimals < 3 && v < limit && v > -limit; limit /= 10 {
		decimals++
	}
	return strconv.FormatFloat(v, 'f', decimals, 64)
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
