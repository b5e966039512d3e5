package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// sourceFile is a Go file in the text of a page, by its path from the top.
var sourceFile = regexp.MustCompile("`([a-z][\\w/-]*/[\\w.-]+\\.go)`")

// target is where a link of a page leads.
var target = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// TestFilesOfPagesExist: each Go file that a page names is there.
func TestFilesOfPagesExist(t *testing.T) {
	named := 0
	for page, text := range pages(t) {
		for _, m := range sourceFile.FindAllStringSubmatch(text, -1) {
			named++
			if _, err := os.Stat(filepath.Join("..", m[1])); err != nil {
				t.Errorf("%s names %s: %v", page, m[1], err)
			}
		}
	}
	if named < 50 {
		t.Errorf("only %d files are named", named)
	}
}

// TestLinksLeadSomewhere: each link of a page leads to a file, and to a heading of it if
// it says one.
func TestLinksLeadSomewhere(t *testing.T) {
	all, checked := pages(t), 0
	for page, text := range all {
		for _, m := range target.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
			path, heading, _ := strings.Cut(m[1], "#")
			if strings.Contains(m[1], "://") {
				continue
			}
			checked++
			to := page
			if path != "" {
				to = filepath.ToSlash(filepath.Join(filepath.Dir(page), path))
			}
			if _, err := os.Stat(filepath.Join("..", to)); err != nil {
				t.Errorf("%s: the link %s leads nowhere: %v", page, m[1], err)
				continue
			}
			if there, known := all[to]; known && heading != "" && !anchors(there)[heading] {
				t.Errorf("%s: %s has no heading %q", page, to, heading)
			}
		}
	}
	if checked < 200 {
		t.Errorf("only %d links were found", checked)
	}
}

var (
	title     = regexp.MustCompile(`(?m)^#+ (.*)$`)
	notAnchor = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// anchors returns the headings of a page, as links name them.
func anchors(text string) map[string]bool {
	all := map[string]bool{}
	for _, m := range title.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		name := notAnchor.ReplaceAllString(strings.ToLower(link.ReplaceAllString(m[1], "$1")), "")
		all[strings.ReplaceAll(name, " ", "-")] = true
	}
	return all
}
