package manifest

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v3"
)

// From text to YAML nodes with lines. A text is first cut into documents, so that a syntax error
// costs one document only. A document becomes a tree of YAML nodes, which have lines. Each object in
// it becomes JSON (decode_json.go), because the published types are defined for JSON.
//
// YAML has kubectl's meaning: plain yes, no, on and off are booleans, an alias means its anchor, and
// "<<" merges a mapping.

// document is one document of a text and its first line.
type document struct {
	line int
	text string
}

// fault is a fault and its line.
type fault struct {
	line   int
	reason string
}

// documents cuts a text at its separator lines. A part with only comments and directives belongs to
// the next one.
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

// parse returns the root of the document's tree, with lines counted from the beginning of the text.
// It returns nil for a document without a value.
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

// countsFromZero matches the errors about YAML's grammar, whose lines the library counts from zero.
// It counts the lines of other errors from one.
var countsFromZero = regexp.MustCompile(`^did not find expected (node content|key|'-' indicator|',' or|<)`)

// firstUnreadable is the line with the first character that YAML forbids, because the library does
// not report it. It is 1 if there is none.
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

// child returns the value of a key in a mapping, or nil. It does not follow merges.
func child(n *yaml.Node, key string) *yaml.Node {
	value, _ := keyed(n, key)
	return value
}

// keyed is child that also returns the line of the key.
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

// lineOf finds the line of a field, in the notation of the Kubernetes API: spec.ports[0].port,
// metadata.labels[app]. A missing field has the line of its parent.
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

// nextStep cuts the first field name, index or key in brackets off a path.
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

// childAt returns a value in a mapping or list, and the line of its key or of itself.
func childAt(n *yaml.Node, step string) (*yaml.Node, int) {
	if n.Kind != yaml.SequenceNode {
		return keyed(n, step)
	}
	if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(n.Content) {
		return n.Content[i], n.Content[i].Line
	}
	return nil, 0
}
