package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Comparison is the figures of several sides: a line for each kind of figure, a column for each side.
type Comparison struct {
	// Profile is the name of the profile that measured it.
	Profile string `json:"profile"`
	Title   string `json:"title"`
	// Machine is the processor, the kernel and the Go version.
	Machine string `json:"machine"`
	// Warning says why the figures are doubtful; "" if nothing is known against them.
	Warning string `json:"warning,omitempty"`
	// Axis names what X of the lines counts in a sweep.
	Axis string `json:"axis,omitempty"`
	// Grid says that the sides do not compete. The lines then have one unit, and the plot has a column
	// for each side and a row for each line.
	Grid  bool     `json:"grid,omitempty"`
	Sides []string `json:"sides"`
	Lines []Line   `json:"lines"`
	// Notes name the contenders, and those that are missing.
	Notes []string `json:"notes"`
}

// Line is one kind of figure, with the figures of each side.
type Line struct {
	Name string `json:"name"`
	Unit string `json:"unit"`
	// X is the size at a point of a sweep; 0 outside a sweep. The lines of one sweep have the same name.
	X float64 `json:"x,omitempty"`
	// Sum says that the line is computed from other lines of a grid. The plot leaves it out.
	Sum bool `json:"sum,omitempty"`
	// Reached has an element for each side; nil for a side without this figure.
	Reached []*Spread `json:"reached"`
}

// Empty says whether no side has the line's figure, since no round gave one.
func (l Line) Empty() bool {
	return !slices.ContainsFunc(l.Reached, func(s *Spread) bool { return s != nil })
}

// Spread is the figures of several rounds.
type Spread struct {
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	Max    float64 `json:"max"`
	Rounds int     `json:"rounds"`
	// Ratio is the median over the rounds of the ratio to the first side's figure of the same round.
	// It is 0 without a ratio. The ratio of the medians is another figure.
	Ratio float64 `json:"ratio,omitempty"`
	// Values are the figures, round by round.
	Values []float64 `json:"values"`
}

// Spread summarizes a series. It is nil if the series is empty.
func (s Series) Spread() *Spread {
	if len(s) == 0 {
		return nil
	}
	return &Spread{Min: slices.Min(s), Median: s.Median(), Max: slices.Max(s), Rounds: len(s), Values: s}
}

// Formats are the output formats of a Comparison.
var Formats = []string{"text", "json", "markdown"}

// CheckFormat returns an error unless format is one of Formats.
func CheckFormat(format string) error {
	if !slices.Contains(Formats, format) {
		return fmt.Errorf("bench: %q is no format: %s are", format, strings.Join(Formats, ", "))
	}
	return nil
}

// Write writes the comparison in one of Formats. Another format is an error.
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

// label is the name, and in a sweep the size behind it.
func (l *Line) label() string {
	if l.X == 0 {
		return l.Name
	}
	return fmt.Sprintf("%s, %.0f", l.Name, l.X)
}

// String is the median, the extremes if they differ, and the ratio to the first side. It is a dash
// for a nil Spread.
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

// digits writes at least three significant digits, and all digits before the point.
func digits(v float64) string {
	decimals := 0
	for limit := 100.0; decimals < 3 && v < limit && v > -limit; limit /= 10 {
		decimals++
	}
	return strconv.FormatFloat(v, 'f', decimals, 64)
}

// MissingError says that this machine lacks a contender, and why.
type MissingError struct {
	Name string
	Why  error
}

// Error is the contender and the reason, as a note.
func (e MissingError) Error() string { return fmt.Sprintf("%s: not present (%v).", e.Name, e.Why) }

// NoteMissing adds a note that this machine lacks a contender, unless why is nil.
func (c *Comparison) NoteMissing(name string, why error) {
	if why != nil {
		c.Notes = append(c.Notes, MissingError{Name: name, Why: why}.Error())
	}
}

// Check returns an error if a line has figures of more sides than the comparison names.
func (c *Comparison) Check() error {
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

// SamplesUnit is the unit of figures that tell how the measurement went, such as how many samples
// were dropped. Plots and WriteChanges leave them out. Saved results have its value.
const SamplesUnit = "windows"
