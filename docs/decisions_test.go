package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The index of decisions, before and behind its rows.
const (
	decisionsHead = `# Decisions

Why things are as they are, and the price. [Figures](measurements.md) stand apart.
A test writes this page: ` + "`go test ./docs -run TestDecisionsAreListed -update`" + `.

| | decision |
|---|---|
`
	decisionsTail = `
A number that is not here is in a record that names it behind "Merged", or not used.
`
)

// maxRecord is how many words a record has at most.
const maxRecord = 400

// TestDecisionsAreListed: the index has the number and title of each record, from the
// record's first line. With -update it is written.
func TestDecisionsAreListed(t *testing.T) {
	records, err := filepath.Glob("decisions/[0-9]*.md")
	if err != nil || len(records) == 0 {
		t.Fatal(records, err)
	}
	want := decisionsHead
	for _, record := range records {
		text, err := os.ReadFile(record)
		if err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(string(text), "\n")
		name := filepath.Base(record)
		var number int
		if _, err := fmt.Sscanf(first, "# %d. ", &number); err != nil || !strings.HasPrefix(name, fmt.Sprintf("%03d-", number)) {
			t.Errorf("%s begins with %q", name, first)
		}
		if n := len(strings.Fields(string(text))); n > maxRecord {
			t.Errorf("%s has %d words, want %d at most: figures belong into measurements.md", name, n, maxRecord)
		}
		_, title, _ := strings.Cut(first, ". ")
		want += fmt.Sprintf("| %d | [%s](%s) |\n", number, title, name)
	}
	want += decisionsTail
	const index = "decisions/README.md"
	if *update {
		if err := os.WriteFile(index, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(index); err != nil || string(got) != want {
		t.Errorf("%s is not what would be written now (%v); write it with -update", index, err)
	}
}
