package door

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
)

// A bundle as text, a line for each change, in the words of ovs-ofctl's bundles:
//
//	flow add LINE                a line of dump-flows; counters are skipped
//	flow delete_strict LINE      the entry of this table, priority and match
//	group add LINE               a line of dump-groups; a group of this number is modified
//	group delete group_id=N
//	meter add LINE               a line of dump-meters, bands in the same line
//	meter delete meter=N
//	replace                      removes everything that the bundle does not name
//	table N NAME, port N NAME    names in dumps; a bundle with names replaces all of them
//	option N CLASS TYPE SIZE     the option of Geneve that tun_metadataN stands for
//	first N                      the table that packets enter at
//
// A line without such a beginning is a flow to add, so that a dump is a bundle. Comments begin
// with #. An entry or group that is too long for a line continues in the next one
// (flow.Entry.Parts). Lines may use the names in the bundle's lines above, or those of the
// pipeline if the bundle names nothing.

// maxLine is the longest line, in bytes; maxBundle is the longest bundle, in lines.
const (
	maxLine   = 64 << 10
	maxBundle = 4 << 20
)

// AppendBundle appends a bundle's text to b.
func AppendBundle(b []byte, c *flow.Bundle) []byte {
	appendBundle(&b, c, func() error { return nil }) // flush returns no error
	return b
}

// pieceBytes is the size of a written piece of a bundle.
const pieceBytes = 64 << 10

// BundleText is the text of a bundle that only adds entries. A caller that makes entries one by
// one needs no list of them. Only one goroutine may use it.
type BundleText struct {
	pieces  [][]byte // whole lines, of about pieceBytes
	size    int
	entries int
}

// lineRoom is enough bytes for most lines.
const lineRoom = 512

// Add adds an entry. The caller may change it afterwards.
func (t *BundleText) Add(e *flow.Entry) {
	last := len(t.pieces) - 1
	if last < 0 || cap(t.pieces[last])-len(t.pieces[last]) < lineRoom {
		t.pieces = append(t.pieces, make([]byte, 0, min(max(2*lineRoom, t.size), pieceBytes)))
		last++
	}
	b := t.pieces[last]
	before := len(b)
	for part := range e.Parts() {
		b = append(part.AppendText(append(b, "flow add"...), flow.Format{Loads: true}), '\n')
	}
	t.pieces[last] = b
	t.size += len(b) - before
	t.entries++
}

// Size is the number of the text's bytes.
func (t *BundleText) Size() int { return t.size }

// Entries is the number of the text's entries.
func (t *BundleText) Entries() int { return t.entries }

// reader reads the text.
func (t *BundleText) reader() io.Reader {
	all := make([]io.Reader, len(t.pieces))
	for i, b := range t.pieces {
		all[i] = bytes.NewReader(b)
	}
	return io.MultiReader(all...)
}

// WriteBundle writes a bundle's text piece by piece, so that its reader need not wait for the
// whole. The error is the writer's.
func WriteBundle(w io.Writer, c *flow.Bundle) error {
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

// appendBundle appends line after line. It calls flush after each, which may empty the buffer.
// The error is that of flush.
func appendBundle(b *[]byte, c *flow.Bundle, flush func() error) error {
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
			*b = append(part.AppendText(append(*b, "group add"...), flow.Format{Loads: true}), '\n')
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
	for _, o := range n.TunnelOptions() {
		b = fmt.Appendf(b, "option %d %#x %#x %d\n", o.Index, o.Class, o.Type, o.Size)
	}
	return b
}

// ReadBundle reads a bundle's text. installed are the pipeline's names; nil for none. The error
// names the first wrong line and its fault. With an error, the bundle is nil, and the rest of the
// text may be unread.
//
// A large bundle is almost only entries, so goroutines parse entries in chunks (bundlechunk.go).
func ReadBundle(from io.Reader, installed *flow.Names) (*flow.Bundle, error) {
	r := bundleReader{bundle: &flow.Bundle{}, names: installed, same: map[uint64][]flow.Action{}, seed: maphash.MakeSeed()}
	lines := bufio.NewScanner(from)
	lines.Buffer(make([]byte, 0, maxLine), maxLine)
	var err error
	for err == nil && lines.Scan() {
		if r.no++; r.no > maxBundle {
			err = fmt.Errorf("a bundle has at most %d lines; send several", maxBundle)
		} else {
			err = r.readLine(lines.Bytes())
		}
	}
	cut := lines.Err()
	if errors.Is(cut, bufio.ErrTooLong) {
		r.no++
		cut, err = nil, fmt.Errorf("it is longer than %d bytes; give an entry's conjunctions and a group's buckets in several lines", maxLine)
	}
	if err != nil {
		err = fmt.Errorf("line %d: %w", r.no, err)
	}
	if above := r.collectAll(); above != nil {
		err = above
	}
	if cut != nil { // an incomplete last line may look wrong
		err = errors.Join(cut, err)
	}
	if err != nil {
		return nil, err
	}
	return r.bundle, nil
}

// bundleReader reads the text of a bundle.
type bundleReader struct {
	bundle *flow.Bundle
	no     int         // the number of the current line, from 1
	names  *flow.Names // for lines; no chunk is parsed while they change
	// group is set if the previous line added a group, which this one may continue.
	group bool

	filling *chunk                   // lines that wait to be parsed; nil for none
	parsing []*chunk                 // in the order of their lines
	idle    []*chunk                 // parsed ones, for reuse while the names are the same
	wrong   error                    // of the first wrong line of entries
	follows bool                     // the line before the next entry to add is an entry, too
	same    map[uint64][]flow.Action // lists of actions, by the hash of their text
	seed    maphash.Seed
}

// verbs are the functions that read the rest of a line, by its first two words.
var verbs = map[string]func(*bundleReader, string) error{
	"flow delete_strict": (*bundleReader).deleteFlow,
	"group add":          (*bundleReader).addGroup,
	"group delete":       (*bundleReader).deleteGroup,
	"meter add":          (*bundleReader).addMeter,
	"meter delete":       (*bundleReader).deleteMeter,
}

// readLine reads one line. Entries to add are parsed later. Any other line waits for them.
func (r *bundleReader) readLine(line []byte) error {
	line = bytes.TrimSpace(line)
	if len(line) == 0 || line[0] == '#' || bytes.HasPrefix(line, []byte("OFPST_")) || bytes.HasPrefix(line, []byte("NXST_")) {
		return nil
	}
	word, rest, _ := bytes.Cut(line, []byte(" "))
	rest = bytes.TrimSpace(rest)
	verb, operand, _ := bytes.Cut(rest, []byte(" "))
	switch string(word) {
	case "flow":
		if string(verb) == "add" {
			return r.addFlow(operand)
		}
	case "group", "meter", "replace", "first", "table", "port", "option":
	default:
		return r.addFlow(line)
	}
	if err := r.collectAll(); err != nil {
		return err
	}
	return r.readChange(string(word), string(verb), string(operand), string(rest))
}

// readChange reads a line that does not add an entry.
func (r *bundleReader) readChange(word, verb, operand, rest string) error {
	before := r.group
	r.group = false
	switch word {
	case "replace":
		r.bundle.Replace = true
		return checkEnd(word, rest)
	case "first", "table", "port":
		return r.setName(word, rest)
	case "option":
		return r.addOption(rest)
	}
	read := verbs[word+" "+verb]
	if read == nil {
		return fmt.Errorf("%s %q: expected %s add or %s %s", word, verb, word, word, map[string]string{"flow": "delete_strict", "group": "delete", "meter": "delete"}[word])
	}
	r.group = before
	return read(r, operand)
}

// checkEnd returns an error if there is text behind the end of a line.
func checkEnd(before, behind string) error {
	if behind != "" {
		return fmt.Errorf("%.40q behind %q: expected the end of the line", behind, before)
	}
	return nil
}

// setName reads first N, table N NAME or port N NAME.
func (r *bundleReader) setName(word, rest string) error {
	number, name, _ := strings.Cut(rest, " ")
	bits := map[string]int{"first": 8, "table": 8, "port": 32}[word]
	no, err := strconv.ParseUint(number, 10, bits)
	if err != nil {
		return fmt.Errorf("%s: %.20q is not a number of %d bits", word, number, bits)
	}
	r.beginNames()
	if word == "first" {
		r.bundle.First = uint8(no)
		return checkEnd("first "+number, strings.TrimSpace(name))
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

// beginNames makes the bundle replace all names.
func (r *bundleReader) beginNames() {
	if r.bundle.Names == nil {
		r.bundle.Names = flow.NewNames()
		r.names, r.idle = r.bundle.Names, nil
	}
}

// addOption reads option N CLASS TYPE SIZE.
func (r *bundleReader) addOption(rest string) error {
	words, numbers := strings.Fields(rest), [4]uint64{}
	if len(words) != len(numbers) {
		return fmt.Errorf("option %.40q: expected option N CLASS TYPE SIZE", rest)
	}
	for i, bits := range []int{8, 16, 8, 8} {
		n, err := strconv.ParseUint(words[i], 0, bits)
		if err != nil {
			return fmt.Errorf("option: %.20q is not a number of %d bits", words[i], bits)
		}
		numbers[i] = n
	}
	r.beginNames()
	all := append(slices.Clone(r.names.TunnelOptions()), flow.TunnelOption{
		Index: uint8(numbers[0]), Class: uint16(numbers[1]), Type: uint8(numbers[2]), Size: uint8(numbers[3]),
	})
	return r.names.SetTunnelOptions(all)
}

// unquote is a name without its quotes, if it has some.
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

func (r *bundleReader) deleteFlow(line string) error {
	e, err := parse.Entry(withActions(line), r.names)
	if err == nil {
		r.bundle.Delete = append(r.bundle.Delete, e)
	}
	return err
}

// withActions adds the actions that parse.Entry needs to a line without them.
func withActions(line string) string {
	if strings.Contains(line, "actions=") {
		return line
	}
	return line + " actions=drop"
}

func (r *bundleReader) addGroup(line string) error {
	g, err := parse.Group(line, r.names)
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
	id, err := parseID(line, "group_id=")
	r.bundle.DeleteGroups = append(r.bundle.DeleteGroups, id)
	return err
}

func (r *bundleReader) addMeter(line string) error {
	m, err := parse.Meter(line)
	if err == nil {
		r.bundle.Meters = append(r.bundle.Meters, m)
	}
	return err
}

func (r *bundleReader) deleteMeter(line string) error {
	id, err := parseID(line, "meter=")
	r.bundle.DeleteMeters = append(r.bundle.DeleteMeters, id)
	return err
}

// parseID reads KEY=N.
func parseID(line, key string) (uint32, error) {
	text, ok := strings.CutPrefix(strings.TrimSpace(line), key)
	id, err := strconv.ParseUint(text, 0, 32)
	if !ok || err != nil {
		return 0, fmt.Errorf("%.40q is not %sN", line, key)
	}
	return uint32(id), nil
}
