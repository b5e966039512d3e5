// Package wire has entries, groups and actions as JSON, for a peer in another process.
//
//	Entry   the line of dump-flows, with numbers for tables and ports and loads as they
//	        are, without its leading blank; a list of lines if it is long (Entry.Parts)
//	Group   the line of dump-groups likewise
//	Action  the action's text
//
// The text loses two details of a Go value, which no switch uses. An empty list of actions
// returns as nil, and the weight of a bucket outside select groups as 0.
//
// Decoders take input of another process. They check it as they check a user's text. They need
// memory in proportion to its length: at most about 100 bytes for each.
package wire

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
)

// Entry is a flow entry as JSON. Structs use it for an entry among their fields. A nil entry is
// null.
type Entry struct{ *flow.Entry }

// AppendJSON appends the entry to b. It escapes only where JSON requires it, so that "->" stays
// readable.
func (e Entry) AppendJSON(b []byte) []byte {
	if e.Entry == nil {
		return append(b, "null"...)
	}
	return appendLines(b, e.Parts(), func(b []byte, part *flow.Entry) []byte { return part.AppendText(b, flow.Format{Loads: true}) })
}

// MarshalJSON implements json.Marshaler.
func (e Entry) MarshalJSON() ([]byte, error) { return e.AppendJSON(nil), nil }

// UnmarshalJSON implements json.Unmarshaler. The error names the line, and the column
// in it.
func (e *Entry) UnmarshalJSON(b []byte) error {
	read := func(line string) (*flow.Entry, error) { return parse.Entry(line, nil) }
	got, err := readLines(b, "entry", read, (*flow.Entry).Join)
	if err == nil && got != nil {
		e.Entry = got
	}
	return err
}

// Group is a group as JSON. Structs use it for a group among their fields. A nil group is null.
type Group struct{ *flow.Group }

// MarshalJSON implements json.Marshaler.
func (g Group) MarshalJSON() ([]byte, error) {
	if g.Group == nil {
		return []byte("null"), nil
	}
	return appendLines(nil, g.Parts(), func(b []byte, part *flow.Group) []byte { return part.AppendText(b, flow.Format{Loads: true}) }), nil
}

// UnmarshalJSON implements json.Unmarshaler. The error names the line, and the column
// in it.
func (g *Group) UnmarshalJSON(b []byte) error {
	read := func(line string) (*flow.Group, error) { return parse.Group(line, nil) }
	got, err := readLines(b, "group", read, (*flow.Group).Join)
	if err != nil || got == nil {
		return err
	}
	if err := got.Check(); err != nil {
		return fmt.Errorf("group %d: %w", got.ID, err)
	}
	g.Group = got
	return nil
}

// appendLines appends parts as one JSON string, or as a list of several.
func appendLines[T any](b []byte, parts func(func(T) bool), text func([]byte, T) []byte) []byte {
	start, n := len(b), 0
	for part := range parts {
		if n++; n > 1 {
			b = append(b, ',')
		}
		begin := len(b)
		b = text(b, part)
		b = quoteFrom(b, begin)
	}
	if n > 1 {
		b = append(slices.Insert(b, start, '['), ']')
	}
	return b
}

// quoteFrom turns the part of b from begin on, which starts with a blank, into a JSON string
// without that blank.
func quoteFrom(b []byte, begin int) []byte {
	if plainText(b[begin+1:]) {
		b[begin] = '"'
		return append(b, '"')
	}
	quoted, _ := json.Marshal(string(b[begin+1:])) // of a string: it cannot fail
	return append(b[:begin], quoted...)
}

// plainText reports whether a JSON string contains text unchanged: printable ASCII without quotes
// and backslashes.
func plainText(text []byte) bool {
	for _, c := range text {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// readLines reads the output of appendLines. It is nil for null.
func readLines[T any](b []byte, what string, read func(string) (T, error), join func(T, T) error) (all T, err error) {
	if n := len(b); n >= 2 && b[0] == '"' && plainText(b[1:n-1]) && b[n-1] == '"' {
		if all, err = read(string(b[1 : n-1])); err != nil {
			err = fmt.Errorf("%s: %w", what, err)
		}
		return all, err
	}
	if string(b) == "null" {
		return all, nil
	}
	lines, err := stringOrList(b)
	if err != nil {
		return all, fmt.Errorf("%s: %w", what, err)
	}
	for i, line := range lines {
		part, err := read(line)
		if err == nil && i > 0 {
			err = join(all, part)
		} else if err == nil {
			all = part
		}
		if err != nil {
			var none T
			return none, fmt.Errorf("%s, line %d: %w", what, i+1, err)
		}
	}
	return all, nil
}

// stringOrList reads a string, or a list of at least one.
func stringOrList(b []byte) (lines []string, err error) {
	var line string
	if json.Unmarshal(b, &line) == nil {
		return []string{line}, nil
	}
	if json.Unmarshal(b, &lines) != nil || len(lines) == 0 {
		return nil, fmt.Errorf("expected a text or a list of texts, not %.40s", b)
	}
	return lines, nil
}

// Action is one action as JSON: its text in dumps, with numbers for tables and ports. Structs use
// it for an action among their fields and leave out a nil one. A decoded action is for people to
// read: the decoder does not check whether it may stand alone.
type Action struct{ flow.Action }

// MarshalText implements encoding.TextMarshaler.
func (a Action) MarshalText() ([]byte, error) {
	return flow.AppendAction(nil, a.Action, flow.Format{Loads: true}), nil
}

// UnmarshalText implements encoding.TextUnmarshaler. The error is for a text that is
// not one action.
func (a *Action) UnmarshalText(text []byte) error {
	got, err := parse.Action(string(text), nil)
	if err == nil {
		a.Action = got
	}
	return err
}
