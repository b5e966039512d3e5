package docs

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/bench"
)

// profileRow is a line of the table of profiles; a star is of those that run when
// none is named.
var profileRow = regexp.MustCompile("(?m)^\\| `([a-z-]+)`( \\*)? \\|")

// TestProfilesAreListed compares the table of measuring.md with the profiles that
// there are.
func TestProfilesAreListed(t *testing.T) {
	text, err := os.ReadFile("measuring.md")
	if err != nil {
		t.Fatal(err)
	}
	var all, usual []string
	for _, m := range profileRow.FindAllStringSubmatch(string(text), -1) {
		all = append(all, m[1])
		if m[2] != "" {
			usual = append(usual, m[1])
		}
	}
	if want := bench.ProfileNames(); !slices.Equal(all, want) {
		t.Errorf("measuring.md has the profiles %q, there are %q", all, want)
	}
	if !slices.Equal(usual, bench.UsualProfiles) {
		t.Errorf("measuring.md has stars at %q, those without arguments are %q", usual, bench.UsualProfiles)
	}
}

// command is one of antrail bench in a text.
var command = regexp.MustCompile("antrail bench ([^`\n#]*)")

// TestProfilesOfCommandsExist: each profile that a page names in a command is one,
// and each plot of performance.md is one's.
func TestProfilesOfCommandsExist(t *testing.T) {
	known := append(bench.ProfileNames(), "all", "compare", "conntrack")
	for _, page := range []string{"measuring.md", "performance.md", "../README.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range command.FindAllStringSubmatch(string(text), -1) {
			for _, word := range strings.Fields(m[1]) {
				if strings.HasPrefix(word, "-") || word == "compare" {
					break // options come after profiles
				}
				if word = strings.Trim(word, ",.;:)"); regexp.MustCompile("^[a-z-]+$").MatchString(word) && !slices.Contains(known, word) {
					t.Errorf("%s: %q names no profile", page, m[0])
				}
			}
		}
		for _, m := range regexp.MustCompile(`\(plots/([a-z-]+)\.svg\)`).FindAllStringSubmatch(string(text), -1) {
			if !slices.Contains(bench.ComparisonNames(), m[1]) {
				t.Errorf("%s shows a plot of %s, which no profile finds", page, m[1])
			}
		}
	}
}
