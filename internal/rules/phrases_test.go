package rules

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// weak are phrases that make a stranger read a sentence twice. No comment and no page may have
// one. A match that good matches, if there is one, is ordinary English.
var weak = []struct {
	phrase, good *regexp.Regexp
	write        string
}{
	{regexp.MustCompile(`\banew\b`), nil, "again"},
	{regexp.MustCompile(`(?i)\bbesides\b`), nil, "also, or a second sentence"},
	{regexp.MustCompile(`(?i)\b(nobody|somebody)'s\b`), nil, "the owner, or that there is none"},
	{regexp.MustCompile(`\bof before\b`), nil, "earlier, or previous"},
	{regexp.MustCompile(`\b(has|have|had|having) to do with\b`), nil, "the relation: uses, belongs to, concerns"},
	{regexp.MustCompile(`\b(is|are|was|were|be|been) told\b`), nil, "who sends, sets or reports it"},
	{regexp.MustCompile(`\S+, for (it|they|there|this|that|these|nothing|what) (is|are|was|were|has|have|had|may|can|could|would|will|does|do|did|must|needs?|lacks?|holds?)\b`), nil, "because"},
	{regexp.MustCompile(`\S+ is no \S+`), regexp.MustCompile(`(?i)^\W*there is|is no (longer|more|less|sooner|later)\b`), "is not a"},
	{
		regexp.MustCompile(`(\S+ )?\bwho (is|has|had|asks|asked|sends|sent|takes|holds|reads|waits|begins|began|makes|made|wants|answers|comes|may|gets)\b`),
		regexp.MustCompile(`(?i)^(person|people|reader|user|operator|engineer|student|attacker|anybody|anyone|everybody|everyone|somebody|someone|those|one|others),? `),
		"the thing: the caller that, the pod that",
	},
	{regexp.MustCompile(`(^|[.:] )What [a-z][^.?]*[.]( |$)`), nil, "a noun as the subject"},
}

// weakPhrases are the weak phrases of a text that lies on lines, each with what to write.
func weakPhrases(lines []string) (found []string) {
	for _, p := range paragraphs(lines) {
		for _, w := range weak {
			for _, hit := range w.phrase.FindAllString(p, -1) {
				if w.good == nil || !w.good.MatchString(hit) {
					found = append(found, fmt.Sprintf("%q: write %s", hit, w.write))
				}
			}
		}
	}
	return found
}

// TestNoWeakPhrases: no comment, tests' too, and no page has a weak phrase.
func TestNoWeakPhrases(t *testing.T) {
	for _, f := range read(t, true) {
		for _, g := range f.tree.Comments {
			for _, found := range weakPhrases(commentLines(g)) {
				t.Errorf("%s:%d: %s", f.path, f.set.Position(g.Pos()).Line, found)
			}
		}
	}
	pages := 0
	err := filepath.WalkDir(top(t), func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (d.Name() == ".git" || d.Name() == "testdata") {
			return cmp.Or(err, fs.SkipDir)
		}
		page, err := filepath.Rel(top(t), name)
		if err != nil || !strings.HasSuffix(page, ".md") {
			return err
		}
		pages++
		text, err := os.ReadFile(name)
		for _, found := range weakPhrases(strings.Split(codeOf.ReplaceAllString(string(text), ""), "\n")) {
			t.Errorf("%s: %s", page, found)
		}
		return err
	})
	if err != nil || pages < 50 {
		t.Errorf("%d pages were found, %v", pages, err)
	}
}

// TestWeakPhrasesAreFound: over lines, in items, and not where the words are ordinary.
func TestWeakPhrasesAreFound(t *testing.T) {
	for text, want := range map[string]int{
		"// read the file\n// anew":                         1,
		"//   - one is told\n//   - two are\n//     told":   2,
		"// A port is no device. There is no device.":       1,
		"// It is no longer a device.":                      0,
		"// It waits, for it has no token.":                 1,
		"// It waits, for that reason, for it.":             0,
		"// It says who sends frames.":                      1,
		"// A person who sends frames. Who are they?":       0,
		"// It is so. What is read twice is not kept. It …": 1,
		"// It is so. What is read twice?":                  0,
		"// Code:\n//\n//\tanew":                            0,
	} {
		if found := weakPhrases(strings.Split(text, "\n")); len(found) != want {
			t.Errorf("%q: %q, want %d", text, found, want)
		}
	}
}
