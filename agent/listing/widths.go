package listing

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Widths are the widths of a table's columns, in characters: a column is as wide as its widest
// cell so far.
type Widths []int

// Fit widens the columns for a line. The last column has no width.
func (c *Widths) Fit(cells []string) {
	for i, cell := range cells[:max(0, len(cells)-1)] {
		if i == len(*c) {
			*c = append(*c, 0)
		}
		(*c)[i] = max((*c)[i], utf8.RuneCountInString(cell))
	}
}

// Pad formats a line, with its cells below those of earlier lines.
func (c *Widths) Pad(cells []string) string {
	c.Fit(cells)
	var b strings.Builder
	for i, cell := range cells {
		if i == len(cells)-1 {
			b.WriteString(cell)
			continue
		}
		fmt.Fprintf(&b, "%-*s  ", (*c)[i], cell)
	}
	return b.String()
}
