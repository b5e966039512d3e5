package rules

import (
	"cmp"
	"go/ast"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// coined are words that this project made up for things that the field has names for,
// with the field's word. No identifier may have one. docs/glossary.md has the field's.
var coined = map[string]string{
	"asked":     "request, or wildcard mask",
	"contest":   "run",
	"contests":  "runs",
	"course":    "sequence state",
	"courses":   "sequence states",
	"crowding":  "overload",
	"estate":    "predecessor's state",
	"glance":    "snapshot",
	"glances":   "snapshots",
	"heir":      "successor",
	"heirs":     "successors",
	"judge":     "revalidate, or check",
	"judged":    "revalidated, or checked",
	"judges":    "revalidates, or checks",
	"mend":      "reconcile",
	"opening":   "first-packet megaflow",
	"openings":  "first-packet megaflows",
	"parted":    "split",
	"patience":  "timeout",
	"recall":    "restore",
	"recalled":  "restored",
	"recalls":   "restores",
	"rejudge":   "revalidate",
	"shortcut":  "offload",
	"shortcuts": "offload",
	"specimen":  "sample",
	"specimens": "samples",
	"stretch":   "megaflow",
	"stretches": "megaflows",
	"sums":      "counters, or checksums",
	"taking":    "replay",
	"takings":   "steal time",
	"tally":     "counters",
	"train":     "coalesced segments, or a GSO message",
	"trains":    "coalesced segments, or GSO messages",
}

// coinedThere are words whose ordinary use is needed elsewhere, by the directories in which
// they had another meaning.
var coinedThere = []struct {
	word, better string
	dirs         []string
}{
	{"away", "offloaded", []string{"conntrack", "dataplane/offload", "dataplane/flowcache", "ports"}},
	{"chain", "multi-buffer frame", []string{"ports"}},
	{"chains", "multi-buffer frames", []string{"ports"}},
	{"lost", "dropped", []string{"agent/api", "agent/answer", "agent/packetin", "dataplane", "door", "switchd", "top", "trace", "ports/afpacket", "ports/underlay", "ports/tap", "ports/offload"}},
}

// fieldsWord is the field's word for a coined one in a directory; "" if the word is not coined.
func fieldsWord(word, dir string) string {
	word = strings.ToLower(word)
	for _, c := range coinedThere {
		if c.word == word && under(dir, c.dirs) {
			return c.better
		}
	}
	return coined[word]
}

// word is a part of an identifier: maxDepth has two.
var word = regexp.MustCompile(`[A-Z]?[a-z0-9]+|[A-Z]+`)

// TestFieldsWords: identifiers, test files' too, use the field's words.
func TestFieldsWords(t *testing.T) {
	for _, f := range read(t, true) {
		seen := map[string]bool{}
		ast.Inspect(f.tree, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok || seen[id.Name] {
				return true
			}
			seen[id.Name] = true
			for _, w := range word.FindAllString(id.Name, -1) {
				if better := fieldsWord(w, f.dir); better != "" {
					t.Errorf("%s: %s: for %q the field says %s", f.path, id.Name, w, better)
				}
			}
			return true
		})
	}
}

// coinedInProse are the coined words that have no ordinary use in the pages.
var coinedInProse = regexp.MustCompile(`(?i)\b(contests?|crowding|estate|glances?|heirs?|openings|patience|rejudged?|shortcuts?|specimens?|stretch(es)?|takings|tally|trains)\b`)

// codeOf matches the code in a page. An earlier name may stand there, in the table of names
// that changed.
var codeOf = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")

// TestPagesUseFieldsWords: so do the pages, and comments.
func TestPagesUseFieldsWords(t *testing.T) {
	pages := 0
	err := filepath.WalkDir(top(t), func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (d.Name() == ".git" || d.Name() == "testdata") {
			return cmp.Or(err, fs.SkipDir)
		}
		if !strings.HasSuffix(name, ".md") {
			return nil
		}
		pages++
		text, err := os.ReadFile(name)
		for _, w := range coinedInProse.FindAllString(codeOf.ReplaceAllString(string(text), ""), -1) {
			t.Errorf("%s: for %q the field says %s", name, w, coined[strings.ToLower(w)])
		}
		return err
	})
	if err != nil || pages < 50 {
		t.Errorf("%d pages were found, %v", pages, err)
	}
	for _, f := range read(t, true) {
		if f.dir == "internal/rules" {
			continue
		}
		for i, line := range strings.Split(f.text, "\n") {
			_, comment, _ := strings.Cut(line, "//")
			if w := coinedInProse.FindString(comment); w != "" {
				t.Errorf("%s:%d: for %q the field says %s", f.path, i+1, w, coined[strings.ToLower(w)])
			}
		}
	}
}
