// Package printable makes untrusted text safe to print. Anyone may choose the names in objects
// and recordings, and a terminal obeys control sequences in them.
package printable

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text replaces characters by escapes, such as \x1b. It replaces those that control a terminal,
// end a line or turn the order of letters round.
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

// hidden reports whether a character is invisible.
func hidden(r rune) bool { return !unicode.IsPrint(r) }

// Lines is Text for a text of several lines. It keeps the line ends.
func Lines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = Text(lines[i])
	}
	return strings.Join(lines, "\n")
}
