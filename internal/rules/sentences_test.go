package rules

import (
	"go/ast"
	"path"
	"regexp"
	"strings"
	"testing"
)

// maxWords is how many words a sentence of a comment may have.
const maxWords = 25

var (
	listItem      = regexp.MustCompile(`^ +(\d+\.|-) +`)
	directive     = regexp.MustCompile(`^(go:|nolint)`)
	address       = regexp.MustCompile(`https?://\S+`)
	endOfSentence = regexp.MustCompile(`[.!?][)"']*\s+`)
	noEnd         = regexp.MustCompile(`\b(e\.g|i\.e|etc|vs)\.`)
)

// paragraphs cuts the lines of a comment group into paragraphs and list items. Code and tables,
// which are indented, are left out.
func paragraphs(lines []string) (all []string) {
	var now []string
	end := func() {
		if len(now) > 0 {
			all, now = append(all, strings.Join(now, " ")), nil
		}
	}
	item := false
	for _, l := range lines {
		l = strings.TrimPrefix(l, "//")
		switch {
		case strings.TrimSpace(l) == "" || directive.MatchString(l):
			end()
			item = false
			continue
		case listItem.MatchString(l):
			end()
			item = true
			l = listItem.ReplaceAllString(l, "")
		case strings.HasPrefix(l, "\t") || strings.HasPrefix(l, "  ") && !item:
			end()
			continue
		case !strings.HasPrefix(l, "  ") && item:
			end()
			item = false
		}
		now = append(now, strings.TrimSpace(l))
	}
	end()
	return all
}

// commentLines are the lines of a comment group, each with its //.
func commentLines(g *ast.CommentGroup) (lines []string) {
	for _, c := range g.List {
		lines = append(lines, c.Text)
	}
	return lines
}

// longSentences are the sentences of a comment group that have more than maxWords words.
func longSentences(lines []string) (long []string) {
	for _, p := range paragraphs(lines) {
		p = noEnd.ReplaceAllString(address.ReplaceAllString(p, "URL"), "$1")
		for _, s := range endOfSentence.Split(p, -1) {
			if len(strings.Fields(s)) > maxWords {
				long = append(long, s)
			}
		}
	}
	return long
}

// TestCommentsHaveShortSentences: no sentence of a comment has more than maxWords words, so
// that a reader can check a change against each sentence.
func TestCommentsHaveShortSentences(t *testing.T) {
	groups := 0
	for _, f := range read(t, false) {
		for _, g := range f.tree.Comments {
			groups++
			for _, s := range longSentences(commentLines(g)) {
				t.Errorf("%s:%d: a sentence of %d words, want %d at most: make two of it\n\t%s",
					path.Clean(f.path), f.set.Position(g.Pos()).Line, len(strings.Fields(s)), maxWords, s)
			}
		}
	}
	if groups < 2000 {
		t.Errorf("%d comments were found: the test does not see the code", groups)
	}
}

// TestLongSentencesAreFound: a sentence counts to its end, over lines, and code does not count.
func TestLongSentencesAreFound(t *testing.T) {
	ten := strings.Repeat("word ", 10)
	for _, c := range []struct {
		text string
		want int
	}{
		{"// " + ten + "\n// " + ten + "\n// " + ten + ".", 1},
		{"// " + ten + ".\n// " + ten + ". " + ten + ".", 0},
		{"// " + ten + ";\n// " + ten + ": " + ten, 1},
		{"// " + ten + "\n//\n// " + ten + "\n//\n// " + ten, 0},
		{"// Code:\n//\n//\t" + ten + ten + ten, 0},
		{"//  1. " + ten + "\n//     " + ten + "\n//     " + ten, 1},
		{"//  1. " + ten + "\n//  2. " + ten + "\n//  3. " + ten, 0},
	} {
		if got := longSentences(strings.Split(c.text, "\n")); len(got) != c.want {
			t.Errorf("%q: %d long sentences, want %d: %q", c.text, len(got), c.want, got)
		}
	}
}
