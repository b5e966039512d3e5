package conntrack

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	namedTest   = regexp.MustCompile("`((?:Test|Fuzz)\\w+)`")
	namedVector = regexp.MustCompile("`vectors/([\\w-]+)`")
	testFunc    = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
)

// TestDocuments: every test and vector that RULES.md and COVERAGE.md name
// exists, and every case of COVERAGE.md says something.
func TestDocuments(t *testing.T) {
	exists := map[string]bool{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range testFunc.FindAllStringSubmatch(string(text), -1) {
			exists[m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"RULES.md", "COVERAGE.md"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range namedTest.FindAllStringSubmatch(string(text), -1) {
			if !exists[m[1]] {
				t.Errorf("%s: there is no %s", file, m[1])
			}
		}
		for _, m := range namedVector.FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat("testdata/vectors/" + m[1] + ".json"); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "| ") && !strings.Contains(line, "`") && strings.HasSuffix(line, "|  |\n") && file == "COVERAGE.md" {
				t.Errorf("%s: %s says nothing", file, line)
			}
		}
	}
}
