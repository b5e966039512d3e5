// Package printable makes text of others safe to print: names in objects and recordings
// come from whoever wrote them, and a terminal obeys what it is sent.
package printable

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text has escapes, as \x1b, in place of what controls a terminal, ends a line or turns
// the order of letters round.
func Text(s string) string {
	if utf8.ValidString(s) && strings.IndexFunc(s, hidden) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if hidden(r) {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// hidden says whether a letter is none that is seen.
func hidden(r rune) bool { return !unicode.IsPrint(r) }

// Lines is Text for a text of several lines, which stay.
func Lines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = Text(lines[i])
	}
	return strings.Join(lines, "\n")
}
