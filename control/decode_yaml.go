package control

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v3"
)

// From text to JSON, keeping lines. A text is cut into documents first, so that
// a syntax error costs one document only. A document becomes a tree of YAML
// nodes, which know their lines; an object in it becomes JSON, because the
// published types describe themselves for JSON, and each value of that JSON
// remembers its line.
//
// YAML is read as kubectl reads it: plain yes, no, on and off are booleans, an
// alias stands for its anchor, "<<" merges a mapping.

// document is one document of a text and the line it begins at.
type document struct {
	line int
	text string
}

// fault is what is wrong at a line.
type fault struct {
	line   int
	reason string
}

// documents cuts a text at its separator lines. A part with nothing but
// comments and directives belongs to the next.
func documents(text string) []document {
	var docs []document
	start, startLine, line := 0, 1, 1
	content := false
	for pos := 0; pos < len(text); line++ {
		end := len(text)
		if i := strings.IndexByte(text[pos:], '\n'); i >= 0 {
			end = pos + i + 1
		}
		switch l := text[pos:end]; {
		case separates(l):
			if content {
				docs = append(docs, document{startLine, text[start:pos]})
			}
			start, startLine, content = pos, line, strings.TrimSpace(l) != "---"
		case !blank(l):
			content = true
		}
		pos = end
	}
	if content {
		docs = append(docs, document{startLine, text[start:]})
	}
	return docs
}

// separates reports whether a document begins at the line.
func separates(line string) bool {
	rest, ok := strings.CutPrefix(line, "---")
	return ok && (rest == "" || strings.ContainsAny(rest[:1], " \t\r\n"))
}

// blank reports whether a line has no content of a document.
func blank(line string) bool {
	line = strings.TrimSpace(line)
	return line == "" || line[0] == '#' || line[0] == '%'
}

// parse gives the root of the document's tree, with lines counted from the
// beginning of the text; nil for a document without a value.
func (d document) parse() (*yaml.Node, *fault) {
	if strings.Count(d.text, "\n")+strings.Count(d.text, ",")+strings.Count(d.text, ":") > maxValues {
		return nil, &fault{d.line, fmt.Sprintf("the document has more than %d values", maxValues)}
	}
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(d.text), &doc); err != nil {
		return nil, d.syntax(err)
	}
	if len(doc.Content) == 0 || doc.Content[0].ShortTag() == "!!null" {
		return nil, nil
	}
	shift(&doc, d.line-1)
	return doc.Content[0], nil
}

var syntaxError = regexp.MustCompile(`(?s)^yaml: (?:line (\d+): )?(.*)$`)

func (d document) syntax(err error) *fault {
	m := syntaxError.FindStringSubmatch(err.Error())
	if m == nil {
		return &fault{d.line, err.Error()}
	}
	line, atErr := strconv.Atoi(m[1])
	switch {
	case atErr != nil:
		line = d.firstUnreadable()
	case countsFromZero.MatchString(m[2]):
		line++
	}
	return &fault{d.line + line - 1, m[2]}
}

// countsFromZero are the errors of YAML's grammar, whose lines the library
// counts from zero; those of its words it counts from one.
var countsFromZero = regexp.MustCompile(`^did not find expected (node content|key|'-' indicator|',' or|<)`)

// firstUnreadable is the line with the first character that YAML does not
// allow, of which the library does not tell the line; 1 when there is none.
func (d document) firstUnreadable() int {
	line := 1
	for i, r := range d.text {
		_, size := utf8.DecodeRuneInString(d.text[i:])
		switch {
		case r == '\n':
			line++
		case r == utf8.RuneError && size == 1, r < ' ' && r != '\t' && r != '\r', r == 0x7f:
			return line
		}
	}
	return 1
}

// shift adds to the line of every node.
func shift(n *yaml.Node, lines int) {
	n.Line += lines
	for _, c := range n.Content {
		shift(c, lines)
	}
}

// child returns the value of a key in a mapping, or nil. Keys that a merge
// brings in are not seen.
func child(n *yaml.Node, key string) *yaml.Node {
	value, _ := keyed(n, key)
	return value
}

// keyed is child with the line of the key.
func keyed(n *yaml.Node, key string) (value *yaml.Node, line int) {
	n = target(n)
	if n.Kind != yaml.MappingNode {
		return nil, 0
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return target(n.Content[i+1]), n.Content[i].Line
		}
	}
	return nil, 0
}

// target follows an alias.
func target(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// lineMap tells the line that a piece of JSON came from: the marks are in the
// order of their offsets.
type lineMap []lineMark

type lineMark struct{ offset, line int }

// at returns the line of the value that ends at or around a JSON offset.
func (m lineMap) at(offset int) int {
	i := sort.Search(len(m), func(i int) bool { return m[i].offset >= offset })
	return m[max(i-1, 0)].line
}

// toJSON writes a tree as JSON and remembers the lines.
func toJSON(n *yaml.Node) ([]byte, lineMap, *fault) {
	w := jsonWriter{}
	w.value(n, 0)
	if len(w.text) > maxObject {
		w.fail(n, "the object is larger than %d bytes", maxObject)
	}
	return w.text, w.lines, w.fault
}

// jsonWriter writes YAML nodes as JSON until something is wrong.
type jsonWriter struct {
	text  []byte
	lines lineMap
	fault *fault
	steps int // nodes looked at, each as often as an alias leads to it
}

// step reports whether one more node may be looked at.
func (w *jsonWriter) step(n *yaml.Node, depth int) bool {
	w.steps++
	switch {
	case depth > maxDepth:
		w.fail(n, "is nested more than %d deep", maxDepth)
	case w.steps > maxValues:
		w.fail(n, "the object has more than %d values", maxValues)
	case len(w.text) > maxObject:
		w.fail(n, "the object is larger than %d bytes", maxObject)
	}
	return w.fault == nil
}

func (w *jsonWriter) fail(n *yaml.Node, format string, args ...any) {
	if w.fault == nil {
		w.fault = &fault{n.Line, fmt.Sprintf(format, args...)}
	}
}

func (w *jsonWriter) value(n *yaml.Node, depth int) {
	if !w.step(n, depth) {
		return
	}
	w.lines = append(w.lines, lineMark{len(w.text), n.Line})
	switch n.Kind {
	case yaml.AliasNode:
		w.value(n.Alias, depth+1)
	case yaml.MappingNode:
		w.mapping(n, depth)
	case yaml.SequenceNode:
		w.sequence(n, depth)
	default:
		w.scalar(n)
	}
}

func (w *jsonWriter) sequence(n *yaml.Node, depth int) {
	w.text = append(w.text, '[')
	for i, c := range n.Content {
		if i > 0 {
			w.text = append(w.text, ',')
		}
		w.value(c, depth+1)
	}
	w.text = append(w.text, ']')
}

func (w *jsonWriter) mapping(n *yaml.Node, depth int) {
	w.text = append(w.text, '{')
	seen := make(map[string]bool, len(n.Content)/2)
	w.pairs(n, depth, seen)
	if len(seen) > 0 {
		w.text = w.text[:len(w.text)-1]
	}
	w.text = append(w.text, '}')
}

// pairs writes the keys and values of a mapping, a comma after each; merged
// mappings come last and add only what is not there.
func (w *jsonWriter) pairs(n *yaml.Node, depth int, seen map[string]bool) {
	var merges []*yaml.Node
	for i := 0; i+1 < len(n.Content) && w.fault == nil; i += 2 {
		key, value := target(n.Content[i]), n.Content[i+1]
		switch {
		case key.Kind != yaml.ScalarNode:
			w.fail(key, "a key is not a scalar")
		case key.ShortTag() == "!!merge":
			merges = append(merges, value)
		case seen[keyText(key)]:
			w.fail(key, "the key %q is there twice", clip(key.Value))
		default:
			w.pair(key, value, depth, seen)
		}
	}
	for _, m := range merges {
		w.merge(target(m), depth+1, seen)
	}
}

func (w *jsonWriter) pair(key, value *yaml.Node, depth int, seen map[string]bool) {
	seen[keyText(key)] = true
	w.string(key, keyText(key))
	w.text = append(w.text, ':')
	w.value(value, depth+1)
	w.text = append(w.text, ',')
}

// keyText is a key in JSON, where it is always a string.
func keyText(key *yaml.Node) string {
	if b, ok := oldBool(key); ok {
		return strconv.FormatBool(b)
	}
	return key.Value
}

// merge writes what "<<" brings in: a mapping, or several in a list, of which
// the earlier ones go first.
func (w *jsonWriter) merge(n *yaml.Node, depth int, seen map[string]bool) {
	w.steps += len(n.Content)
	if !w.step(n, depth) {
		return
	}
	switch n.Kind {
	case yaml.SequenceNode:
		for _, c := range n.Content {
			w.merge(target(c), depth+1, seen)
		}
	case yaml.MappingNode:
		w.pairs(without(n, seen), depth, seen)
	default:
		w.fail(n, "only a mapping can be merged")
	}
}

// without is a mapping without the keys that were seen.
func without(n *yaml.Node, seen map[string]bool) *yaml.Node {
	rest := *n
	rest.Content = nil
	for i := 0; i+1 < len(n.Content); i += 2 {
		if key := target(n.Content[i]); !seen[keyText(key)] || key.ShortTag() == "!!merge" {
			rest.Content = append(rest.Content, n.Content[i], n.Content[i+1])
		}
	}
	return &rest
}

func (w *jsonWriter) scalar(n *yaml.Node) {
	switch n.ShortTag() {
	case "!!str", "!!timestamp":
		w.plain(n)
	case "!!null":
		w.text = append(w.text, "null"...)
	case "!!bool":
		var b bool
		w.decode(n, &b)
		w.text = strconv.AppendBool(w.text, b)
	case "!!int":
		w.integer(n)
	case "!!float":
		w.float(n)
	default:
		w.fail(n, "the tag %s is not known", clip(n.ShortTag()))
	}
}

// plain writes a string, or the boolean that YAML 1.1 takes a plain one for.
func (w *jsonWriter) plain(n *yaml.Node) {
	if b, ok := oldBool(n); ok {
		w.text = strconv.AppendBool(w.text, b)
		return
	}
	w.string(n, n.Value)
}

// oldBool reads the words that are booleans in YAML 1.1 only.
func oldBool(n *yaml.Node) (value, ok bool) {
	if n.Style != 0 {
		return false, false
	}
	switch n.Value {
	case "y", "Y", "yes", "Yes", "YES", "on", "On", "ON":
		return true, true
	case "n", "N", "no", "No", "NO", "off", "Off", "OFF":
		return false, true
	}
	return false, false
}

func (w *jsonWriter) integer(n *yaml.Node) {
	var i int64
	if n.Decode(&i) == nil {
		w.text = strconv.AppendInt(w.text, i, 10)
		return
	}
	var u uint64
	w.decode(n, &u)
	w.text = strconv.AppendUint(w.text, u, 10)
}

func (w *jsonWriter) float(n *yaml.Node) {
	var f float64
	w.decode(n, &f)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		w.fail(n, "%s is not a number", clip(n.Value))
		return
	}
	if f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		w.text = strconv.AppendInt(w.text, int64(f), 10)
		return
	}
	w.text = strconv.AppendFloat(w.text, f, 'g', -1, 64)
}

func (w *jsonWriter) decode(n *yaml.Node, into any) {
	if err := n.Decode(into); err != nil {
		w.fail(n, "%q is not a valid %s", clip(n.Value), strings.TrimPrefix(n.ShortTag(), "!!"))
	}
}

func (w *jsonWriter) string(n *yaml.Node, s string) {
	text, err := json.Marshal(s)
	if err != nil {
		w.fail(n, "%v", err)
		return
	}
	w.text = append(w.text, text...)
}

// lineOf finds the line of a field, written as the Kubernetes API writes it:
// spec.ports[0].port, metadata.labels[app]. What is not there has the line of
// what it would be in.
func lineOf(n *yaml.Node, path string) int {
	line := n.Line
	for path != "" && n != nil {
		var step string
		step, path = nextStep(path)
		var at int
		if n, at = childAt(target(n), step); n != nil {
			line = at
		}
	}
	return line
}

// nextStep cuts the first field name, or the first index or key in brackets,
// off a path.
func nextStep(path string) (step, rest string) {
	path = strings.TrimPrefix(path, ".")
	if strings.HasPrefix(path, "[") {
		step, rest, _ = strings.Cut(path[1:], "]")
		return step, rest
	}
	if i := strings.IndexAny(path, ".["); i >= 0 {
		return path[:i], path[i:]
	}
	return path, ""
}

// childAt returns a value in a mapping or list and the line of its key or of
// itself.
func childAt(n *yaml.Node, step string) (*yaml.Node, int) {
	if n.Kind != yaml.SequenceNode {
		return keyed(n, step)
	}
	if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(n.Content) {
		return n.Content[i], n.Content[i].Line
	}
	return nil, 0
}
