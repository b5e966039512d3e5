package top

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// kind is the type of a column. Numbers are aligned right.
type kind uint8

const (
	text kind = iota
	number
)

type column struct {
	name string
	kind kind
}

// cell is a text, and the number by which a column of numbers is sorted.
type cell struct {
	text   string
	number float64
}

type row []cell

// matches says whether a row has a text in one of its cells, in any case.
func (r row) matches(filter string) bool {
	filter = strings.ToLower(filter)
	return slices.ContainsFunc(r, func(c cell) bool { return strings.Contains(strings.ToLower(c.text), filter) })
}

// sortRows sorts by a column: numbers from high to low, words from a to z, or both reversed.
// Equal rows keep their order.
func sortRows(rows []row, by int, k kind, reverse bool) {
	slices.SortStableFunc(rows, func(a, b row) int {
		c := cmp.Compare(b[by].number, a[by].number)
		if k == text {
			c = cmp.Compare(a[by].text, b[by].text)
		}
		if reverse {
			return -c
		}
		return c
	})
}

const (
	gap      = 2  // between columns
	leastFit = 16 // a column of words is at least so wide
)

// widths are the widths of columns in a line of width letters; 0 for no limit. heads are the
// columns' names. If not all fit, the widest columns of words shrink, and then the last columns
// are left out.
func widths(columns []column, heads []string, rows []row, width int) []int {
	all := make([]int, len(columns))
	for i := range columns {
		all[i] = utf8.RuneCountInString(heads[i])
		for _, r := range rows {
			all[i] = max(all[i], utf8.RuneCountInString(r[i].text))
		}
	}
	if width == 0 {
		return all
	}
	for narrower(columns, all, width) {
	}
	for len(all) > 1 && span(all) > width {
		all = all[:len(all)-1]
	}
	return all
}

// span is how long a line of columns is.
func span(widths []int) int {
	n := gap * (len(widths) - 1)
	for _, w := range widths {
		n += w
	}
	return n
}

// narrower takes a letter from the widest column of words, if the line is too long and that
// column may shrink.
func narrower(columns []column, widths []int, width int) bool {
	widest := -1
	for i, c := range columns[:len(widths)] {
		if c.kind == text && widths[i] > leastFit && (widest < 0 || widths[i] > widths[widest]) {
			widest = i
		}
	}
	if widest < 0 || span(widths) <= width {
		return false
	}
	widths[widest]--
	return true
}

// line puts cells side by side, and cuts what is too long.
func line(columns []column, cells []string, widths []int, width int) string {
	var b strings.Builder
	for i, c := range cells[:len(widths)] {
		if i > 0 {
			b.WriteString(strings.Repeat(" ", gap))
		}
		c = cut(c, widths[i])
		pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c))
		if columns[i].kind == number {
			b.WriteString(pad + c)
		} else {
			b.WriteString(c + pad)
		}
	}
	s := strings.TrimRight(b.String(), " ")
	if width > 0 {
		s = cut(s, width)
	}
	return s
}

// cut shortens a text to a width, with "…" at its end.
func cut(s string, width int) string {
	if utf8.RuneCountInString(s) <= width {
		return s
	}
	if width <= 0 {
		return ""
	}
	return string([]rune(s)[:width-1]) + "…"
}

// header are the columns' names. The sort column has a mark.
func header(columns []column, by int, reverse bool) []string {
	var all []string
	for i, c := range columns {
		name := c.name
		if i == by {
			name += map[bool]string{false: "▾", true: "▴"}[reverse]
		}
		all = append(all, name)
	}
	return all
}

// texts are a row's cells as they are shown.
func (r row) texts() []string {
	var all []string
	for _, c := range r {
		all = append(all, c.text)
	}
	return all
}
