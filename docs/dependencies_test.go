package docs

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	tableRow   = regexp.MustCompile("(?m)^\\| (`.*?) \\|")
	quotedName = regexp.MustCompile("`([^`]+)`")
	required   = regexp.MustCompile(`(?m)^\t(\S+) v\S+$`) // without "// indirect"
)

// TestDependencies: every direct dependency of go.mod has its reason, and no
// other has.
func TestDependencies(t *testing.T) {
	page, err := os.ReadFile("dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	told, needed := map[string]bool{}, map[string]bool{}
	for _, row := range tableRow.FindAllStringSubmatch(string(page), -1) {
		for _, m := range quotedName.FindAllStringSubmatch(row[1], -1) {
			told[m[1]] = true
		}
	}
	for _, m := range required.FindAllStringSubmatch(string(mod), -1) {
		needed[m[1]] = true
	}
	if len(needed) == 0 || !maps.Equal(told, needed) {
		t.Errorf("dependencies.md names\n%s\ngo.mod requires\n%s", list(told), list(needed))
	}
}

func list(names map[string]bool) string {
	return strings.Join(slices.Sorted(maps.Keys(names)), "\n")
}
