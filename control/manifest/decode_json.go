package manifest

import (
	"encoding/json"
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"

	yaml "go.yaml.in/yaml/v3"
)

// YAML nodes of an object as JSON, with the line of each value. Depth, values and size have limits,
// because aliases can make a large object of a small text.

// lineMap has the lines of JSON values, in the order of their offsets.
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

// jsonWriter writes YAML nodes as JSON until the first fault.
type jsonWriter struct {
	text  []byte
	lines lineMap
	fault *fault
	steps int // visited nodes, once for each alias to them
}

// step counts one more node and reports whether to visit it.
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

// pairs writes the keys and values of a mapping, with a comma after each. Merged mappings come last
// and add only missing keys.
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
			w.fail(key, "the key %q is there twice", Clip(key.Value))
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

// keyText is the text of a key, which in JSON is always a string.
func keyText(key *yaml.Node) string {
	if b, ok := oldBool(key); ok {
		return strconv.FormatBool(b)
	}
	return key.Value
}

// merge writes the value of "<<": a mapping, or a list of mappings, of which earlier ones win.
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

// without returns a mapping without the keys that were seen.
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
		w.fail(n, "the tag %s is not known", Clip(n.ShortTag()))
	}
}

// plain writes a string, or the boolean that an unquoted word means in YAML 1.1.
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
		w.fail(n, "%s is not a number", Clip(n.Value))
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
		w.fail(n, "%q is not a valid %s", Clip(n.Value), strings.TrimPrefix(n.ShortTag(), "!!"))
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
