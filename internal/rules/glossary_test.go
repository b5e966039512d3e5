package rules

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Rows of docs/glossary.md: a term with the places where it lives, and a word of the code
// with the term that it means.
var (
	termRow = regexp.MustCompile("(?m)^\\| ([^|]+) \\| [^|]+ \\| ((?:`[a-z0-9_./-]+`(?:, )?)+) \\|$")
	wordRow = regexp.MustCompile(`(?m)^\| ([^|]+) \| [^|]+ \|$`)
)

// glossary is docs/glossary.md in two parts.
func glossary(t *testing.T) (terms, words string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(top(t), "docs/glossary.md"))
	if err != nil {
		t.Fatal(err)
	}
	terms, words, _ = strings.Cut(string(page), "\n## Words of the code")
	return terms, words
}

// TestGlossaryHasPlaces: each term has a place, each place is a package or a file, and the
// terms are in the order of the alphabet.
func TestGlossaryHasPlaces(t *testing.T) {
	text, _ := glossary(t)
	var terms []string
	for _, m := range termRow.FindAllStringSubmatch(text, -1) {
		terms = append(terms, m[1])
		for place := range strings.SplitSeq(m[2], ", ") {
			place = strings.Trim(place, "`")
			if !isPlace(filepath.Join(top(t), place)) {
				t.Errorf("docs/glossary.md says that %q lives in %s, which is neither a package nor a Go file: name its new place", m[1], place)
			}
		}
	}
	if rows := strings.Count(text, "\n| ") - 1; len(terms) != rows || rows < 50 {
		t.Errorf("docs/glossary.md has %d rows of terms, %d of them in the form | term | meaning | `place`, `place` |", rows, len(terms))
	}
	if !slices.IsSortedFunc(terms, func(a, b string) int { return cmp.Compare(strings.ToLower(a), strings.ToLower(b)) }) {
		t.Errorf("the terms of docs/glossary.md are not in the order of the alphabet: %q", terms)
	}
}

// isPlace says whether a path is a Go file, or a directory with one.
func isPlace(name string) bool {
	if st, err := os.Stat(name); err != nil || !st.IsDir() {
		return err == nil && strings.HasSuffix(name, ".go")
	}
	files, err := filepath.Glob(filepath.Join(name, "*.go"))
	return err == nil && len(files) > 0
}

// TestGlossaryWordsAreInUse: a word of the code stays in the glossary as long as the code
// has it.
func TestGlossaryWordsAreInUse(t *testing.T) {
	_, text := glossary(t)
	var code strings.Builder
	for _, f := range read(t, false) {
		code.WriteString(strings.ToLower(f.text))
	}
	for _, m := range wordRow.FindAllStringSubmatch(text, -1) {
		if m[1] == "in the code" || strings.HasPrefix(m[1], "-") {
			continue
		}
		for word := range strings.SplitSeq(m[1], ", ") {
			if !regexp.MustCompile(`\b` + regexp.QuoteMeta(word)).MatchString(code.String()) {
				t.Errorf("no file says %q any more: remove it from docs/glossary.md", word)
			}
		}
	}
}
