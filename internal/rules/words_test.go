package rules

import (
	"go/ast"
	"regexp"
	"strings"
	"testing"
)

// coined are words that this project made up for things that the field has names for,
// with the field's word. No identifier may have one. docs/glossary.md has the field's.
var coined = map[string]string{
	"stretch":   "megaflow",
	"stretches": "megaflows",
	"shortcut":  "offload",
	"shortcuts": "offload",
	"train":     "coalesced segments, or a GSO message",
	"trains":    "coalesced segments, or GSO messages",
	"takings":   "steal time",
	"contest":   "run",
	"heir":      "successor",
	"glance":    "snapshot",
	"recall":    "restore",
	"course":    "sequence state",
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
				if better := coined[strings.ToLower(w)]; better != "" {
					t.Errorf("%s: %s: for %q the field says %s", f.path, id.Name, w, better)
				}
			}
			return true
		})
	}
}
