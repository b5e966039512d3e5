package main

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// lineWidth is the most characters of a line of prose, without the targets of its links.
const lineWidth = 118

var (
	// unbroken matches text without line breaks: code, and links.
	unbroken = regexp.MustCompile("`[^`]*`|\\[[^\\]]*\\]\\([^)]*\\)")
	linkEnd  = regexp.MustCompile(`\]\([^)]*\)`)
	listMark = regexp.MustCompile(`^\s*(?:[-*] |\d+\. )?`)
)

// wrapped breaks the long lines of a page's prose. Code, tables and headings stay.
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

// wrapLine breaks a line. Further lines are indented like the text of the first.
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
