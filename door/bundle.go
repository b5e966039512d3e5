package door

import (
	"bufio"

	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/flow"
)

// A bundle as text, a line for each change, in the words of ovs-ofctl's bundles:
//
//	flow add LINE                a line of dump-flows; counters are skipped
//	flow delete_strict LINE      the entry of this table, priority and match
//	group add LINE               a line of dump-groups; a group of this number is modified
//	group delete group_id=N
//	meter add LINE               a line of dump-meters, bands in the same line
//	meter delete meter=N
//	replace                      what the bundle does not name goes
//	table N NAME, port N NAME    names in dumps; a bundle with names replaces all of them
//	first N                      the table that packets enter at
//
// A line without such a beginning is a flow to add, so that a dump is a bundle. Comments
// begin with #. An entry or group that is too long for a line goes on in the next one
// (flow.Entry.Parts). Lines may use the names of the bundle's lines above, or of the
// pipeline if the bundle names nothing.

// maxLine bounds a line, in bytes; maxBundle bounds a bundle, in lines.
const (
	maxLine   = 64 << 10
	maxBundle = 4 << 20
)

// AppendBundle appends a bundle's text to b.
func AppendBundle(b []byte, c *dataplane.Bundle) []byte {
	if c.Replace {
		b = append(b, "replace\n"...)
	}
	if c.Names != nil {
		b = appendNames(b, c.Names, c.First)
	}
	for _, id := range c.DeleteGroups {
		b = fmt.Appendf(b, "group delete group_id=%d\n", id)
	}
	for _, id := range c.DeleteMeters {
		b = fmt.Appendf(b, "meter delete meter=%d\n", id)
	}
	for _, m := range c.Meters {
		b = append(append(append(b, "meter add "...), strings.Join(strings.Fields(m.Text()), " ")...), '\n')
	}
	for _, g := range c.Groups {
		for part := range g.Parts() {
			b = append(part.AppendAs(append(b, "group add"...), flow.Format{Loads: true}), '\n')
		}
	}
	for _, e := range c.Delete {
		bare := *e
		bare.Actions = nil
		b = append(bare.AppendText(append(b, "flow delete_strict"...), flow.Format{}), '\n')
	}
	for _, e := range c.Add {
		for part := range e.Parts() {
			b = append(part.AppendText(append(b, "flow add"...), flow.Format{Loads: true}), '\n')
		}
	}
	return b
}

func appendNames(b []byte, n *flow.Names, first uint8) []byte {
	b = fmt.Appendf(b, "first %d\n", first)
	for id, name := range n.Tables() {
		b = fmt.Appendf(b, "table %d %s\n", id, strconv.Quote(name))
	}
	for no, name := range n.Ports() {
		b = fmt.Appendf(b, "port %d %s\n", no, strconv.Quote(name))
	}
	return b
}

// ReadBundle reads a bundle's text. installed are the names of the pipeline now; nil for
// none. The error names the line, and what is wrong with it; there is no bundle then.
func ReadBundle(from io.Reader, installed *flow.Names) (*dataplane.Bundle, error) {
	r := bundleReader{bundle: &dataplane.Bundle{}, names: installed, same: map[string][]flow.Action{}}
	lines := bufio.NewScanner(from)
	lines.Buffer(make([]byte, 0, maxLine), maxLine)
	no := 0
	for lines.Scan() {
		if no++; no > maxBundle {
			return nil, fmt.Errorf("line %d: a bundle has at most %d lines; send several", no, maxBundle)
		}
		if err := r.line(lines.Text()); err != nil {
			return nil, fmt.Errorf("line %d: %w", no, err)
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, fmt.Errorf("line %d: it is longer than %d bytes; give an entry's conjunctions and a group's buckets in several lines", no+1, maxLine)
	} else if err != nil {
		return nil, err
	}
	return r.bundle, nil
}

// bundleReader is a bundle that is being read.
type bundleReader struct {
	bundle *dataplane.Bundle
	names  *flow.Names              // that lines may use
	same   map[string][]flow.Action // lists of actions, by their text
	// added says that the line before added an entry or a group, which this one may go on with.
	added string
}

// verbs are the beginnings of lines, with what reads the rest.
var verbs = map[string]func(*bundleReader, string) error{
	"flow add":           (*bundleReader).addFlow,
	"flow delete_strict": (*bundleReader).deleteFlow,
	"group add":          (*bundleReader).addGroup,
	"group delete":       (*bundleReader).deleteGroup,
	"meter add":          (*bundleReader).addMeter,
	"meter delete":       (*bundleReader).deleteMeter,
}

// line reads one line.
func (r *bundleReader) line(line string) error {
	line = strings.TrimSpace(line)
	if line == "" || line[0] == '#' || strings.HasPrefix(line, "OFPST_") || strings.HasPrefix(line, "NXST_") {
		return nil
	}
	word, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	before := r.added
	r.added = ""
	switch word {
	case "replace":
		r.bundle.Replace = true
		return nil
	case "first", "table", "port":
		return r.name(word, rest)
	case "flow", "group", "meter":
		verb, rest, _ := strings.Cut(rest, " ")
		if read := verbs[word+" "+verb]; read != nil {
			r.added = before
			return read(r, rest)
		}
		return fmt.Errorf("%q is nothing to do with a %s; there are add and %s", verb, word, map[string]string{"flow": "delete_strict", "group": "delete", "meter": "delete"}[word])
	}
	r.added = before
	return r.addFlow(line)
}

// name reads first N, table N NAME or port N NAME.
func (r *bundleReader) name(word, rest string) error {
	number, name, _ := strings.Cut(rest, " ")
	bits := map[string]int{"first": 8, "table": 8, "port": 32}[word]
	no, err := strconv.ParseUint(number, 10, bits)
	if err != nil {
		return fmt.Errorf("%s: %.20q is no number of %d bits", word, number, bits)
	}
	if r.bundle.Names == nil {
		r.bundle.Names = flow.NewNames()
		r.names = r.bundle.Names
	}
	if word == "first" {
		r.bundle.First = uint8(no)
		return nil
	}
	if name, err = unquote(name); err != nil {
		return fmt.Errorf("%s %d: %w", word, no, err)
	}
	if word == "table" {
		r.names.SetTable(uint8(no), name)
	} else {
		r.names.SetPort(uint32(no), name)
	}
	return nil
}

// unquote is a name that may stand in quotes.
func unquote(text string) (string, error) {
	if strings.HasPrefix(text, `"`) {
		name, err := strconv.Unquote(text)
		if err != nil {
			return "", fmt.Errorf("%.40q: the quotes of a name are wrong", text)
		}
		text = name
	}
	if text == "" {
		return "", errors.New("the name is missing")
	}
	return text, nil
}

func (r *bundleReader) addFlow(line string) error {
	e, err := flow.ParseEntry(line, r.names)
	if err != nil {
		return err
	}
	all := r.bundle.Add
	if n := len(all); r.added == "flow" && n > 0 && all[n-1].Identity() == e.Identity() {
		return all[n-1].Join(e)
	}
	r.added = "flow"
	r.intern(line, e)
	r.bundle.Add = append(all, e)
	return nil
}

// intern has entries with the same actions hold one list of them.
func (r *bundleReader) intern(line string, e *flow.Entry) {
	_, text, ok := strings.Cut(line, "actions=")
	if n := len(e.Actions); !ok || n > 0 && isConjunction(e.Actions[n-1]) {
		return // it may be joined with others
	}
	if same, known := r.same[text]; known {
		e.Actions = same
		return
	}
	r.same[strings.Clone(text)] = e.Actions
}

func isConjunction(a flow.Action) bool {
	_, is := a.(flow.Conjunction)
	return is
}

func (r *bundleReader) deleteFlow(line string) error {
	e, err := flow.ParseEntry(withActions(line), r.names)
	if err == nil {
		r.bundle.Delete = append(r.bundle.Delete, e)
	}
	return err
}

// withActions gives a line that names an entry the actions that ParseEntry wants.
func withActions(line string) string {
	if strings.Contains(line, "actions=") {
		return line
	}
	return line + " actions=drop"
}

func (r *bundleReader) addGroup(line string) error {
	g, err := flow.ParseGroup(line, r.names)
	if err != nil {
		return err
	}
	all := r.bundle.Groups
	if n := len(all); r.added == "group" && n > 0 && all[n-1].ID == g.ID {
		return all[n-1].Join(g)
	}
	r.added = "group"
	r.bundle.Groups = append(all, g)
	return nil
}

func (r *bundleReader) deleteGroup(line string) error {
	id, err := numbered(line, "group_id=")
	r.bundle.DeleteGroups = append(r.bundle.DeleteGroups, id)
	return err
}

func (r *bundleReader) addMeter(line string) error {
	m, err := flow.ParseMeter(line)
	if err == nil {
		r.bundle.Meters = append(r.bundle.Meters, m)
	}
	return err
}

func (r *bundleReader) deleteMeter(line string) error {
	id, err := numbered(line, "meter=")
	r.bundle.DeleteMeters = append(r.bundle.DeleteMeters, id)
	return err
}

// numbered reads KEY=N.
func numbered(line, key string) (uint32, error) {
	text, ok := strings.CutPrefix(strings.TrimSpace(line), key)
	id, err := strconv.ParseUint(text, 0, 32)
	if !ok || err != nil {
		return 0, fmt.Errorf("%.40q is not %sN", line, key)
	}
	return uint32(id), nil
}
