package docs

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/antrail/antrail/lab/attack"
)

// TestSecurityHasTheAttacks: the table of security.md has a row for each attack that
// the test plays, and no other.
func TestSecurityHasTheAttacks(t *testing.T) {
	text, err := os.ReadFile("security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n## The table\n")
	table, _, _ = strings.Cut(table, "\n## ")
	shown := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^(?:PASS|FAIL)  (\S.*?)  `).FindAllStringSubmatch(table, -1) {
		shown[m[1]] = true
	}
	delete(shown, "nothing") // the row without an attack
	for _, name := range attack.Names() {
		if !shown[name] {
			t.Errorf("security.md has no row of %q", name)
		}
		delete(shown, name)
	}
	for name := range shown {
		t.Errorf("security.md has a row of %q, which is no attack of the test", name)
	}
}
