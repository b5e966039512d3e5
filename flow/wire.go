package flow

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Entries, groups, names and actions as JSON, for a peer in another process.
//
//	Entry   the line of dump-flows, with numbers for tables and ports and loads as they
//	        are, without its leading blank; a list of lines if it is long (parts.go)
//	Group   the line of dump-groups likewise
//	Names   {"tables":{"4":"SpoofGuard"},"ports":{"2":"antrea-gw0"}}
//	Meter   an object with the fields' Go names
//
// The text says less than a Go value in two places, neither of which a switch sees: an
// empty list of actions returns as nil, and the weight of a bucket outside select
// groups as 0.
//
// Decoders take input of another process. They check it as they check the text of a
// user, and need memory in proportion to its length: at most some 100 bytes for one.

// AppendJSON appends the entry as JSON to b. It escapes nothing that JSON need not
// escape, so that "->" stays readable.
func (e *Entry) AppendJSON(b []byte) []byte {
	return appendLines(b, e.Parts(), func(b []byte, part *Entry) []byte { return part.AppendText(b, Format{Loads: true}) })
}

// MarshalJSON implements json.Marshaler.
func (e Entry) MarshalJSON() ([]byte, error) { return e.AppendJSON(nil), nil }

// UnmarshalJSON implements json.Unmarshaler. The error names the line, and the column
// in it.
func (e *Entry) UnmarshalJSON(b []byte) error {
	read := func(line string) (*Entry, error) { return ParseEntry(line, nil) }
	got, err := readLines(b, "entry", read, (*Entry).Join)
	if err == nil && got != nil {
		*e = *got
	}
	return err
}

// AppendJSON appends the group as JSON to b.
func (g *Group) AppendJSON(b []byte) []byte {
	return appendLines(b, g.Parts(), func(b []byte, part *Group) []byte { return part.AppendAs(b, Format{Loads: true}) })
}

// MarshalJSON implements json.Marshaler.
func (g Group) MarshalJSON() ([]byte, error) { return g.AppendJSON(nil), nil }

// UnmarshalJSON implements json.Unmarshaler. The error names the line, and the column
// in it.
func (g *Group) UnmarshalJSON(b []byte) error {
	read := func(line string) (*Group, error) { return ParseGroup(line, nil) }
	got, err := readLines(b, "group", read, (*Group).Join)
	if err != nil || got == nil {
		return err
	}
	if err := checkGroup(got, span{}); err != nil {
		return fmt.Errorf("group %d: %w", got.ID, err)
	}
	*g = *got
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

// quoteFrom makes what b has from begin on, which starts with a blank, a JSON string
// without that blank.
func quoteFrom(b []byte, begin int) []byte {
	if plainText(b[begin+1:]) {
		b[begin] = '"'
		return append(b, '"')
	}
	quoted, _ := json.Marshal(string(b[begin+1:])) // of a string: it cannot fail
	return append(b[:begin], quoted...)
}

// plainText says whether a JSON string has text as it is: printable ASCII without
// quotes and backslashes.
func plainText(text []byte) bool {
	for _, c := range text {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// readLines reads what appendLines wrote; nil for null.
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

// wireNames is Names as JSON.
type wireNames struct {
	Tables map[uint8]string  `json:"tables"`
	Ports  map[uint32]string `json:"ports"`
}

// MarshalJSON implements json.Marshaler.
func (n *Names) MarshalJSON() ([]byte, error) {
	if n == nil {
		return []byte("null"), nil
	}
	return json.Marshal(wireNames{n.tables, n.ports})
}

// UnmarshalJSON implements json.Unmarshaler. The error names two tables, or two ports,
// of one name.
func (n *Names) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	var w wireNames
	if err := json.Unmarshal(b, &w); err != nil {
		return fmt.Errorf("names: %w", err)
	}
	got := NewNames()
	for _, id := range slices.Sorted(maps.Keys(w.Tables)) {
		if other, ok := got.TableID(w.Tables[id]); ok {
			return fmt.Errorf("names: tables %d and %d are both called %q", other, id, w.Tables[id])
		}
		got.SetTable(id, w.Tables[id])
	}
	for _, no := range slices.Sorted(maps.Keys(w.Ports)) {
		if other, ok := got.PortID(w.Ports[no]); ok {
			return fmt.Errorf("names: ports %d and %d are both called %q", other, no, w.Ports[no])
		}
		got.SetPort(no, w.Ports[no])
	}
	*n = *got
	return nil
}

// ActionText is one action as JSON: its text in dumps, with numbers for tables and
// ports. It is for a struct that has an action among its fields. A nil Action cannot
// be one; such a field is left out. A decoded action is for people to read: the decoder
// does not check where it may stand.
type ActionText struct{ Action }

// MarshalText implements encoding.TextMarshaler.
func (a ActionText) MarshalText() ([]byte, error) {
	return appendAction(nil, a.Action, spelling{loads: true}), nil
}

// UnmarshalText implements encoding.TextUnmarshaler. The error is for a text that is
// not one action.
func (a *ActionText) UnmarshalText(text []byte) error {
	s := span{string(text), 0}
	if err := checkLength(s); err != nil {
		return fmt.Errorf("action: %w", err)
	}
	list, err := (&parser{}).actions(s, 0)
	if err != nil {
		return fmt.Errorf("action %.60q: %w", text, err)
	}
	if len(list.actions) != 1 {
		return fmt.Errorf("action %.60q: expected one action, not %d", text, len(list.actions))
	}
	a.Action = list.actions[0]
	return nil
}
