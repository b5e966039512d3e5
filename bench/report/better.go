package report

import (
	"slices"
	"strings"
)

// Units whose figures tell how good a side is. Figures of other units, such as packets
// watched, only describe.
var (
	moreIsBetter = []string{"Gbit/s", "Mpps", "M/s", "1/s"}
	lessIsBetter = []string{"ns", "µs", "ms", "s", "bytes", "% of a core", "turns", "allocs", "times"}
	// lessThough are rates of what costs.
	lessThough = []string{"runs of a thread"}
	// describing are the beginnings of names whose figures only describe, whatever their unit.
	describing = []string{"collections"}
)

// better says behind a figure's name in which direction better lies.
func better(name, unit string) string {
	switch {
	case slices.ContainsFunc(describing, func(begin string) bool { return strings.HasPrefix(name, begin) }):
		return " (neither is better)"
	case slices.Contains(lessThough, name) || slices.Contains(lessIsBetter, unit):
		return " (less is better)"
	case slices.Contains(moreIsBetter, unit):
		return " (more is better)"
	}
	return " (neither is better)"
}

// betterOfAll is better for lines of one unit; nothing if they differ.
func betterOfAll(lines []Line) string {
	text := better(lines[0].Name, lines[0].Unit)
	for _, l := range lines[1:] {
		if better(l.Name, l.Unit) != text {
			return ""
		}
	}
	return text
}
