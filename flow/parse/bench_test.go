package parse_test

import (
	"strings"
	"testing"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
)

// entryLines are the lines of the fixture's entries, with the names they use.
func entryLines(b *testing.B) ([]string, *flow.Names) {
	src, p := golden(b)
	var lines []string
	for line := range strings.Lines(src.Flows.Text) {
		if strings.Contains(line, "actions=") {
			lines = append(lines, strings.TrimSuffix(line, "\n"))
		}
	}
	return lines, p.Names
}

// BenchmarkParseEntries reads the fixture's entries with one Parser, as a door does with a
// bundle.
func BenchmarkParseEntries(b *testing.B) {
	lines, names := entryLines(b)
	r := parse.NewParser(names)
	n := 0
	for b.Loop() {
		if _, err := r.Entry(lines[n%len(lines)]); err != nil {
			b.Fatal(err)
		}
		n++
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "entries/s")
}

// BenchmarkParseProgram reads the whole fixture.
func BenchmarkParseProgram(b *testing.B) {
	src, _ := golden(b)
	for b.Loop() {
		if _, err := parse.Program(src); err != nil {
			b.Fatal(err)
		}
	}
}
