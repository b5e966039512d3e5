package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// decisionRow is a line of the index: number, title, page.
var decisionRow = regexp.MustCompile(`(?m)^\| (\d+) \| \[(.+)\]\((.+)\) \|$`)

// maxRecord is how many words a record has at most.
const maxRecord = 400

// TestDecisionsAreListed compares the index of decisions with the pages that there
// are: each has a line, in order, with the number and title of its own first line.
func TestDecisionsAreListed(t *testing.T) {
	pages, err := filepath.Glob("decisions/[0-9]*.md")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(string(text), "\n")
		name := filepath.Base(page)
		want = append(want, first+" "+name)
		var number int
		if _, err := fmt.Sscanf(first, "# %d. ", &number); err != nil || !strings.HasPrefix(name, fmt.Sprintf("%03d-", number)) {
			t.Errorf("%s begins with %q", name, first)
		}
		if n := len(strings.Fields(string(text))); n > maxRecord {
			t.Errorf("%s has %d words, want %d at most: figures belong into measurements.md", name, n, maxRecord)
		}
	}
	index, err := os.ReadFile("decisions/README.md")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range decisionRow.FindAllStringSubmatch(string(index), -1) {
		got = append(got, fmt.Sprintf("# %s. %s %s", m[1], m[2], m[3]))
	}
	if len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("the index is\n%s\nthe pages are\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
