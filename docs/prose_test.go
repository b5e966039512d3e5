package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// Limits of the prose.
const (
	maxSentence = 30    // words
	maxLine     = 140   // characters
	maxPage     = 1500  // words of a page
	maxAll      = 25000 // words of all pages that people write
)

// longPages may have more words than maxPage: a course and references, which nobody reads
// under stress.
var longPages = map[string]int{
	"docs/reading.md":     2200,
	"docs/performance.md": 3000,
	"docs/door.md":        1700,
}

// generated reports whether a program writes the page.
func generated(page string) bool {
	switch page {
	case "docs/metrics.md", "docs/drops.md", "docs/configuration.md", "docs/commands.md", "docs/packages.md", "docs/learn.md",
		"docs/walkthrough.md", "docs/pipelines.md", "docs/decisions/README.md":
		return true
	}
	return strings.HasPrefix(page, "docs/pipeline/")
}

// pages returns the text of each page of docs and of README.md, by its path from the
// top of the repository.
func pages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	read := func(path string) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.ToSlash(strings.TrimPrefix(filepath.Join("docs", path), "../"))] = string(text)
	}
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".md") {
			read(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	read("../README.md")
	return all
}

var (
	fence     = regexp.MustCompile("(?ms)^```.*?^```[^\n]*$")
	codeSpan  = regexp.MustCompile("`[^`\n]*`")
	link      = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
	newBlock  = regexp.MustCompile(`^\s*([-*>#]|\d+\. )`)
	endOfOne  = regexp.MustCompile(`[.!?][)"*]*(\s+|$)`)
	aShort    = regexp.MustCompile(`\b(e\.g|i\.e|etc|vs)\.`)
	listStart = regexp.MustCompile(`^(\s*([-*>]|\d+\.|#+)\s+)+`)
)

// blocks cuts a page into paragraphs, headings and list items, on a line each. Code
// and tables are left out; a link is its text.
func blocks(text string) (all []string) {
	var block []string
	end := func() {
		if len(block) > 0 {
			all, block = append(all, strings.Join(block, " ")), nil
		}
	}
	for line := range strings.SplitSeq(fence.ReplaceAllString(text, "\n"), "\n") {
		line = link.ReplaceAllString(codeSpan.ReplaceAllString(line, "code"), "$1")
		switch {
		case strings.TrimSpace(line) == "", strings.HasPrefix(strings.TrimSpace(line), "|"), strings.HasPrefix(line, "    "):
			end()
			continue
		case newBlock.MatchString(line):
			end()
		}
		block = append(block, strings.TrimSpace(line))
	}
	end()
	return all
}

// sentences cuts a paragraph into its sentences.
func sentences(block string) (all []string) {
	block = aShort.ReplaceAllString(listStart.ReplaceAllString(block, ""), "$1")
	for _, s := range endOfOne.Split(block, -1) {
		if s = strings.TrimSpace(s); s != "" {
			all = append(all, s)
		}
	}
	return all
}

// TestSentencesAreShort: no sentence has more than maxSentence words.
func TestSentencesAreShort(t *testing.T) {
	count := 0
	for page, text := range pages(t) {
		for _, b := range blocks(text) {
			for _, s := range sentences(b) {
				count++
				if n := len(strings.Fields(s)); n > maxSentence {
					t.Errorf("%s: a sentence of %d words, want %d at most: make two of it\n\t%s", page, n, maxSentence, s)
				}
			}
		}
	}
	if count < 500 {
		t.Errorf("%d sentences were found in all: the test does not see the pages", count)
	}
}

// TestLinesAreShort: no line has more than maxLine characters. Code, tables and the
// targets of links do not count, since they cannot be broken.
func TestLinesAreShort(t *testing.T) {
	for page, text := range pages(t) {
		blank := func(code string) string { return strings.Repeat("\n", strings.Count(code, "\n")) }
		for i, line := range strings.Split(fence.ReplaceAllStringFunc(text, blank), "\n") {
			if strings.HasPrefix(strings.TrimSpace(line), "|") {
				continue
			}
			line = codeSpan.ReplaceAllString(link.ReplaceAllString(line, "$1"), "code")
			if n := utf8.RuneCountInString(line); n > maxLine {
				t.Errorf("%s:%d: a line of %d characters, want %d at most", page, i+1, n, maxLine)
			}
		}
	}
}

// wordOf is a word outside of code: what stands between blanks and has a letter or digit.
var wordOf = regexp.MustCompile(`\S*[\p{L}\p{N}]\S*`)

// TestPagesAreShort: no page is too long to be read under stress, and all together are
// no more than a person reads.
func TestPagesAreShort(t *testing.T) {
	all := 0
	for page, text := range pages(t) {
		if generated(page) || page == "README.md" || page == "docs/decisions/measurements.md" { // data
			continue
		}
		n := len(wordOf.FindAllString(fence.ReplaceAllString(text, ""), -1))
		all += n
		most, long := longPages[page]
		if !long {
			most = maxPage
		}
		if n > most {
			t.Errorf("%s has %d words, want %d at most", page, n, most)
		}
	}
	t.Logf("%d words in all", all)
	if all > maxAll {
		t.Errorf("the pages of docs have %d words, want %d at most", all, maxAll)
	}
}
