package main

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// lineWidth is how many characters a line of prose has at most, the targets of its links
// left aside.
const lineWidth = 118

var (
	// unbroken is what a line does not break in: code, and links.
	unbroken = regexp.MustCompile("`[^`]*`|\\[[^\\]]*\\]\\([^)]*\\)")
	linkEnd  = regexp.MustCompile(`\]\([^)]*\)`)
	listMark = regexp.MustCompile(`^\s*(?:[-*] |\d+\. )?`)
)

// wrapped breaks the long lines of a page's prose. Code, tables and headings stay as they
// are.
func wrapped(page []byte) []byte {
	var out strings.Builder
	code := false
	for line := range strings.Lines(string(page)) {
		if strings.HasPrefix(line, "```") {
			code = !code
		}
		if text := strings.TrimSpace(line); code || text == "" || strings.ContainsAny(text[:1], "|#!<") {
			out.WriteString(line)
			continue
		}
		wrapLine(&out, strings.TrimSuffix(line, "\n"))
	}
	return []byte(out.String())
}

// wrapLine writes a line as one or more. The further ones are indented as the text of the
// first.
func wrapLine(out *strings.Builder, line string) {
	const blank = "\x00"
	mark := listMark.FindString(line)
	indent := strings.Repeat(" ", len(mark))
	width := 0
	text := unbroken.ReplaceAllStringFunc(line[len(mark):], func(s string) string { return strings.ReplaceAll(s, " ", blank) })
	for i, word := range strings.Split(text, " ") {
		n := utf8.RuneCountInString(linkEnd.ReplaceAllString(word, "]"))
		switch {
		case i == 0:
			out.WriteString(mark)
			width = len(mark)
		case width+1+n > lineWidth:
			out.WriteString("\n" + indent)
			width = len(indent)
		default:
			out.WriteString(" ")
			width++
		}
		out.WriteString(strings.ReplaceAll(word, blank, " "))
		width += n
	}
	out.WriteString("\n")
}
