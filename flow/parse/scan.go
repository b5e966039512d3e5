package parse

import (
	"errors"
	"fmt"
	"strings"

	"github.com/antrail/antrail/flow"
)

// The scanner cuts a line into parts as ovs-ofctl does: key, key=value, key:value
// or key(value), separated by commas or blanks. Brackets and quotes protect their
// contents. Every piece has its place in the line, so that an error deep inside
// learn(…) still names its column.

// span is a piece of a line and the column (from 0) at which it begins.
type span struct {
	text string
	at   int
}

func (s span) from(i int) span { return span{s.text[i:], s.at + i} }

func (s span) upTo(i int) span { return span{s.text[:i], s.at} }

// trim cuts blanks from both ends.
func (s span) trim() span {
	t := strings.TrimLeft(s.text, blanks)
	s = s.from(len(s.text) - len(t))
	return s.upTo(len(strings.TrimRight(t, blanks)))
}

// cut splits at the first sep. ok is false if there is none.
func (s span) cut(sep string) (before, after span, ok bool) {
	i := strings.Index(s.text, sep)
	if i < 0 {
		return s, s.from(len(s.text)), false
	}
	return s.upTo(i), s.from(i + len(sep)), true
}

// errorf is an error at the span's beginning.
func (s span) errorf(format string, args ...any) error {
	return &flow.Error{Column: s.at + 1, Msg: fmt.Sprintf(format, args...)}
}

// placed moves an error's column by the span's beginning.
func (s span) placed(err error) error {
	if err == nil { // nearly always: inlined
		return nil
	}
	return s.move(err)
}

func (s span) move(err error) error {
	if e, ok := errors.AsType[*flow.Error](err); ok {
		e.Column += s.at
	}
	return err
}

const blanks = " \t\r"

// isSeparator reports whether c stands between the items of a list.
func isSeparator(c byte) bool { return c == ',' || c == ' ' || c == '\t' || c == '\r' }

// endsKey reports whether c ends the key of an item.
func endsKey(c byte) bool { return c == '=' || c == ':' || c == '(' || isSeparator(c) }

// item is one part of a list. sep is '=', ':', '(' or 0 for a bare key.
type item struct {
	key, value span
	sep        byte
}

// bare returns an error if the item has a value.
func (it item) bare() error {
	if it.sep != 0 {
		return it.value.errorf("%s takes no value", it.key.text)
	}
	return nil
}

// next cuts the first item off a list. It is false at the end.
func next(rest *span) (it item, ok bool, err error) {
	begin := 0
	for begin < len(rest.text) && isSeparator(rest.text[begin]) {
		begin++
	}
	s := rest.from(begin)
	if s.text == "" {
		*rest = s
		return item{}, false, nil
	}
	end := 0
	for end < len(s.text) && !endsKey(s.text[end]) {
		end++
	}
	it.key = s.upTo(end)
	s = s.from(end)
	if s.text == "" || isSeparator(s.text[0]) {
		*rest = s
		return it, true, nil
	}
	it.sep = s.text[0]
	s = s.from(1)
	n, err := valueLength(s, it.sep == '(')
	if err != nil {
		return item{}, false, err
	}
	it.value = s.upTo(n)
	if it.sep == '(' {
		n++ // the closing one
	}
	*rest = s.from(n)
	return it, true, nil
}

// valueLength is the number of bytes of s that belong to a value. The value ends
// at the separator, or at the parenthesis that closes one opened before s.
func valueLength(s span, inside bool) (int, error) {
	depth, quoted, open := 0, false, -1 // open: the outermost bracket, -1 before s
	for i := 0; i < len(s.text); i++ {
		switch c := s.text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			if quoted = !quoted; quoted && depth == 0 {
				open = i
			}
		case quoted:
		case c == '(' || c == '[':
			if depth++; depth == 1 {
				open = i
			}
		case c == ')' && depth == 0 && inside:
			return i, endsList(s, i+1)
		case c == ')' || c == ']':
			if depth--; depth < 0 {
				return 0, s.from(i).errorf("%q without an opening one before it", c)
			}
		case depth == 0 && !inside && isSeparator(c):
			return i, nil
		}
	}
	switch {
	case quoted:
		return 0, s.column(open).errorf(`a quote that is not closed; expected "`)
	case depth > 0:
		return 0, s.column(open).errorf("a bracket that is not closed; expected %c", closing(s.text[open]))
	case inside:
		return 0, s.column(-1).errorf("a bracket that is not closed; expected )")
	}
	return len(s.text), nil
}

// column is an empty span i bytes behind the beginning of s.
func (s span) column(i int) span { return span{"", s.at + i} }

// closing is the bracket that closes one.
func closing(open byte) byte {
	if open == '[' {
		return ']'
	}
	return ')'
}

// endsList returns an error unless a separator or the end is at i.
func endsList(s span, i int) error {
	if i < len(s.text) && !isSeparator(s.text[i]) {
		return s.from(i).errorf("expected , or the end behind )")
	}
	return nil
}

// each calls f for every item of a list until one fails.
func each(list span, f func(item) error) error {
	for {
		it, ok, err := next(&list)
		if err != nil || !ok {
			return err
		}
		if err := f(it); err != nil {
			return err
		}
	}
}
