package flow

import (
	"fmt"
	"strings"
)

// Error is the place in a text that cannot be read, and what is expected there.
type Error struct {
	File   string // "" if the text has no name
	Line   int    // from 1; 0 for a text of one line
	Column int    // from 1, in bytes
	Msg    string
}

// Error is file:line:column: message, without unknown parts.
func (e *Error) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(e.File + ":")
	}
	if e.Line > 0 {
		fmt.Fprintf(&b, "%d:%d: %s", e.Line, e.Column, e.Msg)
	} else {
		fmt.Fprintf(&b, "column %d: %s", e.Column, e.Msg)
	}
	return b.String()
}

// Suggest is " (did you mean NAME?)" for the name nearest to a misspelt one. It allows at most
// two wrong letters and half of the name. Without a near name it is "".
func Suggest(wrong string, names []string) string {
	if len(wrong) > 40 {
		return ""
	}
	best, distance := "", 3
	for _, n := range names {
		if d := EditDistance(wrong, n); d < distance || d == distance && n < best {
			best, distance = n, d
		}
	}
	if 2*distance > len(best) {
		return ""
	}
	return fmt.Sprintf(" (did you mean %s?)", best)
}

// EditDistance is the number of letters to insert, delete or replace to get from a to b
// (Levenshtein distance).
func EditDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			replace := diagonal
			if a[i-1] != b[j-1] {
				replace++
			}
			diagonal = row[j]
			row[j] = min(replace, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}
