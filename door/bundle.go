package door

import (
	"bufio"

	"errors"
	"fmt"
	"io"
	"reflect"
	"runtime"
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
	appendBundle(&b, c, func() error { return nil }) // it has no error
	return b
}

// pieceBytes is how much of a bundle is written at a time.
const pieceBytes = 64 << 10

// WriteBundle writes a bundle's text piece by piece, so that its reader need not wait for
// the whole. The error is the writer's.
func WriteBundle(w io.Writer, c *dataplane.Bundle) error {
	b := make([]byte, 0, pieceBytes+maxLine)
	flush := func() (err error) {
		if len(b) >= pieceBytes {
			_, err = w.Write(b)
			b = b[:0]
		}
		return err
	}
	err := appendBundle(&b, c, flush)
	if err == nil {
		_, err = w.Write(b)
	}
	return err
}

// appendBundle appends line after line, and calls flush after each, which may take what
// there is. The error is that of flush.
func appendBundle(b *[]byte, c *dataplane.Bundle, flush func() error) error {
	if c.Replace {
		*b = append(*b, "replace\n"...)
	}
	if c.Names != nil {
		*b = appendNames(*b, c.Names, c.First)
	}
	for _, id := range c.DeleteGroups {
		*b = fmt.Appendf(*b, "group delete group_id=%d\n", id)
	}
	for _, id := range c.DeleteMeters {
		*b = fmt.Appendf(*b, "meter delete meter=%d\n", id)
	}
	for _, m := range c.Meters {
		*b = append(append(append(*b, "meter add "...), strings.Join(strings.Fields(m.Text()), " ")...), '\n')
	}
	for _, g := range c.Groups {
		for part := range g.Parts() {
			*b = append(part.AppendAs(append(*b, "group add"...), flow.Format{Loads: true}), '\n')
			if err := flush(); err != nil {
				return err
			}
		}
	}
	for _, e := range c.Delete {
		bare := *e
		bare.Actions = nil
		*b = append(bare.AppendText(append(*b, "flow delete_strict"...), flow.Format{}), '\n')
		if err := flush(); err != nil {
			return err
		}
	}
	for _, e := range c.Add {
		for part := range e.Parts() {
			*b = append(part.AppendText(append(*b, "flow add"...), flow.Format{Loads: true}), '\n')
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return nil
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
//
// Entries are parsed by as many goroutines as there are processors: a large bundle is
// entries nearly all.
func ReadBundle(from io.Reader, installed *flow.Names) (*dataplane.Bundle, error) {
	r := bundleReader{
		bundle: &dataplane.Bundle{}, names: installed, same: map[string][]flow.Action{},
		slots: make(chan struct{}, runtime.GOMAXPROCS(0)),
	}
	lines := bufio.NewScanner(from)
	lines.Buffer(make([]byte, 0, maxLine), maxLine)
	var err error
	for err == nil && lines.Scan() {
		if r.no++; r.no > maxBundle {
			err = fmt.Errorf("a bundle has at most %d lines; send several", maxBundle)
		} else {
			err = r.line(lines.Text())
		}
	}
	if scan := lines.Err(); err == nil && errors.Is(scan, bufio.ErrTooLong) {
		r.no++
		err = fmt.Errorf("it is longer than %d bytes; give an entry's conjunctions and a group's buckets in several lines", maxLine)
	} else if err == nil && scan != nil {
		return nil, errors.Join(scan, r.gather())
	}
	if above := (*aboveError)(nil); err != nil && !errors.As(err, &above) {
		err = fmt.Errorf("line %d: %w", r.no, err)
	}
	if before := r.gather(); before != nil { // a line above is wrong, too
		err = before
	}
	if err != nil {
		return nil, err
	}
	return r.bundle, nil
}

// aboveError is the error of a line above, which it names.
type aboveError struct{ error }

// bundleReader is a bundle that is being read.
type bundleReader struct {
	bundle *dataplane.Bundle
	no     int                      // of the line
	names  *flow.Names              // that lines may use
	same   map[string][]flow.Action // lists of actions, by their text
	chunk  *chunk                   // entries that wait to be parsed
	chunks []*chunk                 // those that are being parsed, in order
	slots  chan struct{}            // as many as may parse at once
	// group says that the line before added a group, which this one may go on with.
	group bool
}

// chunkLines is how many entries are parsed at a time.
const chunkLines = 512

// chunk is entries that follow each other.
type chunk struct {
	lines   []numberedLine
	entries []*flow.Entry // as far as they are right
	err     error         // of the first that is not
	done    chan struct{}
}

// numberedLine is a line of a bundle.
type numberedLine struct {
	no   int
	text string
}

// runParse parses a chunk.
func (c *chunk) runParse(names *flow.Names, slots <-chan struct{}) {
	defer func() { <-slots; close(c.done) }()
	for _, line := range c.lines {
		e, err := flow.ParseEntry(line.text, names)
		if err != nil {
			c.err = fmt.Errorf("line %d: %w", line.no, err)
			return
		}
		c.entries = append(c.entries, e)
	}
}

// begin has the chunk parsed.
func (r *bundleReader) begin() {
	if r.chunk == nil {
		return
	}
	r.slots <- struct{}{}
	go r.chunk.runParse(r.names, r.slots)
	r.chunks, r.chunk = append(r.chunks, r.chunk), nil
}

// gather waits for the entries that are being parsed, and puts them into the bundle. The
// error is that of the first line that is wrong.
func (r *bundleReader) gather() (err error) {
	r.begin()
	for i, c := range r.chunks {
		<-c.done
		if err == nil {
			err = r.put(c, i > 0)
		}
	}
	r.chunks = nil
	return err
}

// put puts a chunk's entries into the bundle. follows says that its first line comes
// behind an entry's.
func (r *bundleReader) put(c *chunk, follows bool) error {
	for i, e := range c.entries {
		all := r.bundle.Add
		if n := len(all); (follows || i > 0) && all[n-1].Identity() == e.Identity() {
			if err := all[n-1].Join(e); err != nil {
				return fmt.Errorf("line %d: %w", c.lines[i].no, err)
			}
			continue
		}
		r.intern(c.lines[i].text, e)
		r.bundle.Add = append(all, e)
	}
	return c.err
}

// verbs are the beginnings of lines, with what reads the rest.
var verbs = map[string]func(*bundleReader, string) error{
	"flow delete_strict": (*bundleReader).deleteFlow,
	"group add":          (*bundleReader).addGroup,
	"group delete":       (*bundleReader).deleteGroup,
	"meter add":          (*bundleReader).addMeter,
	"meter delete":       (*bundleReader).deleteMeter,
}

// line reads one line. Entries to add are parsed later; any other line waits for them.
func (r *bundleReader) line(line string) error {
	line = strings.TrimSpace(line)
	if line == "" || line[0] == '#' || strings.HasPrefix(line, "OFPST_") || strings.HasPrefix(line, "NXST_") {
		return nil
	}
	word, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	verb, operand, _ := strings.Cut(rest, " ")
	switch word {
	case "flow":
		if verb == "add" {
			return r.addFlow(operand)
		}
	case "group", "meter", "replace", "first", "table", "port":
	default:
		return r.addFlow(line)
	}
	if err := r.gather(); err != nil {
		return &aboveError{err}
	}
	before := r.group
	r.group = false
	switch word {
	case "replace":
		r.bundle.Replace = true
		return nil
	case "first", "table", "port":
		return r.name(word, rest)
	}
	read := verbs[word+" "+verb]
	if read == nil {
		return fmt.Errorf("%q is nothing to do with a %s; there are add and %s", verb, word, map[string]string{"flow": "delete_strict", "group": "delete", "meter": "delete"}[word])
	}
	r.group = before
	return read(r, operand)
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

// addFlow notes an entry, and has it parsed with others.
func (r *bundleReader) addFlow(line string) error {
	r.group = false
	if r.chunk == nil {
		r.chunk = &chunk{done: make(chan struct{})}
	}
	r.chunk.lines = append(r.chunk.lines, numberedLine{r.no, line})
	if len(r.chunk.lines) == chunkLines {
		r.begin()
	}
	return nil
}

// intern has entries with the same actions hold one list of them. The same text may mean
// different actions: mod_tp_dst depends on the protocol of the match, and output:NAME on
// the names.
func (r *bundleReader) intern(line string, e *flow.Entry) {
	_, text, ok := strings.Cut(line, "actions=")
	if n := len(e.Actions); !ok || n > 0 && isConjunction(e.Actions[n-1]) {
		return // it may be joined with others
	}
	if same, known := r.same[text]; known && reflect.DeepEqual(same, e.Actions) {
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
	if n := len(all); r.group && n > 0 && all[n-1].ID == g.ID {
		return all[n-1].Join(g)
	}
	r.group = true
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
