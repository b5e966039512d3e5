package report

import "slices"

// Units whose figures tell how good a side is. Figures of other units, such as packets
// watched, only describe.
var (
	moreIsBetter = []string{"Gbit/s", "Mpps", "M/s", "1/s"}
	lessIsBetter = []string{"ns", "µs", "ms", "s", "bytes", "% of a core", "turns", "allocs", "times"}
	// lessThough are rates of what costs.
	lessThough = []string{"runs of a thread"}
)

// better says behind a figure's name in which direction better lies, or nothing.
func better(name, unit string) string {
	switch {
	case slices.Contains(lessThough, name) || slices.Contains(lessIsBetter, unit):
		return " (less is better)"
	case slices.Contains(moreIsBetter, unit) && name != "":
		return " (more is better)"
	}
	return ""
}
