package manifest

import (
	gojson "encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/antrail/antrail/control/cluster"
	yaml "go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/json"
)

// Text becomes plain objects, and every fault becomes a problem with file, line and field:
//
//	text → documents (decode_yaml.go) → items of a List → strict JSON
//	     → the published type (k8s.io/api, or decode_antrea.go)
//	     → checked and turned into ours (decode_node.go, decode_service.go, …)
//
// The checks are those of an API server and Antrea's webhooks that concern one object alone. The
// store checks what concerns several objects. An object with a fault is refused whole; all others
// stay. A kind that antrail does not use is reported as ignored. A policy kind that antrail does
// not enforce is refused (unenforced.go).
//
// Text may be hostile. The sizes of a file, a document and an object have limits, and so have depth
// and number of values. An alias counts as its target.

// Decoded is what a text holds.
type Decoded struct {
	Objects []cluster.Object // in order; no key twice
	// Problems are refused objects and ignored kinds.
	Problems []Problem
	// Refused are the keys of the refused objects, as far as they are known.
	Refused []cluster.Key
	// Broken says that a part could not be read, so its objects are unknown. The objects that
	// the text held before may still be in it.
	Broken bool
}

// MaxFile is the limit of a file, in bytes.
const MaxFile = 64 << 20

// Limits.
const (
	maxValues  = 1_000_000 // values of a document
	maxObject  = 3 << 19   // bytes of an object as JSON, as etcd limits it
	maxDepth   = 64        // of nested values
	maxReasons = 10        // reasons listed for one object
	maxReason  = 600       // bytes of one reason
	maxPath    = 200       // bytes of a field's name
	maxTold    = 1000      // problems listed for a file
	maxDocs    = 200_000   // documents of a file
)

// Documents are the documents of a text, with the result of each.
type Documents map[document]*Decoded

// Decode reads the objects in a text of one or several documents in YAML or JSON. The file's name
// is for sources and problems only.
func Decode(file string, text []byte) *Decoded {
	d, _ := DecodeChanged(file, text, nil)
	return d
}

// DecodeChanged reads a text that has changed. If a document with the same text and line is in
// before, its result is reused. It also returns the documents for the next change.
func DecodeChanged(file string, text []byte, before Documents) (*Decoded, Documents) {
	d := newDecoding(file, before)
	d.text(text)
	return d.result, d.next
}

// decoding is the state of one text being read.
type decoding struct {
	file   string
	result *Decoded
	lines  map[cluster.Key]int // the first line of each key
	known  Documents           // decoded before, or nil
	next   Documents           // documents of this text
}

// newDecoding begins the decoding of a text.
func newDecoding(file string, known Documents) *decoding {
	return &decoding{
		file:   file,
		result: &Decoded{},
		lines:  map[cluster.Key]int{},
		known:  known,
		next:   Documents{},
	}
}

func (d *decoding) text(text []byte) {
	if len(text) > MaxFile {
		d.broken(1, fmt.Sprintf("the file is larger than %d bytes", MaxFile))
		return
	}
	docs := documents(string(text))
	if len(docs) > maxDocs {
		d.broken(1, fmt.Sprintf("the file has more than %d documents", maxDocs))
		return
	}
	for _, doc := range docs {
		part, ok := d.known[doc]
		if !ok {
			part = decodeDocument(d.file, doc)
		}
		d.next[doc] = part
		d.addPart(part)
	}
}

// addPart adds the objects of a document, except keys that are there already.
func (d *decoding) addPart(part *Decoded) {
	for _, obj := range part.Objects {
		m := obj.Metadata()
		if first, twice := d.lines[m.Key]; twice {
			d.addProblems(Problem{Source: m.Source, Key: m.Key, Reason: fmt.Sprintf("is there already, at line %d", first)})
			continue
		}
		d.lines[m.Key] = m.Source.Line
		d.result.Objects = append(d.result.Objects, obj)
	}
	d.addProblems(part.Problems...)
	d.result.Refused = append(d.result.Refused, part.Refused...)
	d.result.Broken = d.result.Broken || part.Broken
}

// addProblems adds problems up to the limit.
func (d *decoding) addProblems(problems ...Problem) {
	told := &d.result.Problems
	for _, p := range problems {
		if len(*told) == maxTold {
			*told = append(*told, Problem{Source: p.Source, Reason: "and more from here on"})
		}
		if len(*told) > maxTold {
			return
		}
		*told = append(*told, p)
	}
}

func (d *decoding) broken(line int, reason string) {
	d.result.Broken = true
	d.addProblems(Problem{Source: cluster.Source{File: d.file, Line: line}, Reason: reason})
}

// documentDecoding is the state of one document being read.
type documentDecoding struct {
	Decoded
	file string
}

func decodeDocument(file string, doc document) *Decoded {
	d := &documentDecoding{file: file}
	root, err := doc.parse()
	if err != nil {
		d.broken(err.line, err.reason)
	} else if root != nil {
		d.item(root, "", "")
	}
	return &d.Decoded
}

func (d *documentDecoding) broken(line int, reason string) {
	d.Broken = true
	d.Problems = append(d.Problems, Problem{Source: cluster.Source{File: d.file, Line: line}, Reason: reason})
}

// item reads one object or a list of objects. Items may omit kind and version if the list's kind
// and version tell them.
func (d *documentDecoding) item(n *yaml.Node, version, kind string) {
	n = target(n)
	if n.Kind != yaml.MappingNode {
		d.broken(n.Line, "is not an object: a mapping with apiVersion and kind is expected")
		return
	}
	if v := child(n, "apiVersion"); v != nil {
		version = v.Value
	}
	if k := child(n, "kind"); k != nil {
		kind = k.Value
	}
	if version == "" || kind == "" {
		d.broken(n.Line, "has no apiVersion or no kind")
		return
	}
	if of, isList := strings.CutSuffix(kind, "List"); isList && child(n, "items") != nil {
		d.list(n, version, of)
		return
	}
	d.object(n, version, kind)
}

func (d *documentDecoding) list(n *yaml.Node, version, of string) {
	items := child(n, "items")
	if items.Kind != yaml.SequenceNode && items.ShortTag() != "!!null" {
		d.broken(items.Line, "items is not a list")
		return
	}
	for _, n := range items.Content {
		n := target(n)
		itemKind := of
		if n.Kind == yaml.MappingNode && child(n, "kind") != nil {
			itemKind = child(n, "kind").Value
		}
		if strings.HasSuffix(itemKind, "List") || itemKind == "" {
			d.broken(n.Line, "a list holds no lists, and each item has a kind")
			continue
		}
		d.item(n, version, itemKind)
	}
}

// object reads one object and keeps it or its problems.
func (d *documentDecoding) object(n *yaml.Node, version, kind string) {
	at := cluster.Source{File: d.file, Line: n.Line}
	read, ok := readers[typeName{version, kind}]
	if !ok {
		d.unread(n, version, kind)
		return
	}
	c := &check{meta: cluster.Meta{Key: read.identity(n), Source: at}, node: n, file: d.file}
	obj := c.object(read)
	if len(c.problems) == 0 {
		d.Objects = append(d.Objects, obj)
		return
	}
	d.Problems = append(d.Problems, c.problems...)
	if c.meta.Key.Name == "" {
		d.Broken = true
		return
	}
	d.Refused = append(d.Refused, c.meta.Key)
}

// unread reports an object whose type is not read. The kind may be known in another apiVersion,
// misspelt, not enforced, or not used here. Only the last case is ignored.
func (d *documentDecoding) unread(n *yaml.Node, version, kind string) {
	p := Problem{Source: cluster.Source{File: d.file, Line: n.Line}}
	others := otherVersions(version, kind)
	if len(others) > 0 {
		var known []string
		for _, t := range others {
			known = append(known, t.apiVersion)
		}
		p.Reason = fmt.Sprintf("kind %s of %s is not known here, but of %s", kind, Clip(version), strings.Join(known, " or "))
		if groupOf(others[0].apiVersion) == groupOf(version) {
			if p.Key = readers[others[0]].identity(n); p.Key.Name != "" {
				d.Refused = append(d.Refused, p.Key)
			}
		}
	} else if meant := misspeltKind(version, kind); meant != "" {
		p.Reason = fmt.Sprintf("there is no kind %s of %s%s", Clip(kind), Clip(version), meant)
	} else if why := unenforced(version, kind); why != "" {
		p.Key, p.Reason = unenforcedKey(n, version, kind), why
	} else {
		p.Ignored, p.Reason = true, fmt.Sprintf("ignored: kind %s of %s is not used here", Clip(kind), Clip(version))
	}
	d.Problems = append(d.Problems, p)
}

// Clip shortens a value for a message.
func Clip(s string) string { return clipTo(s, 64) }

// clipTo shortens a value of hostile text for a message.
func clipTo(s string, length int) string {
	if len(s) > length {
		return strings.ToValidUTF8(s[:length], "") + "…"
	}
	return s
}

// typeName is the type that a manifest names.
type typeName struct{ apiVersion, kind string }

// reader reads objects of one published type.
type reader struct {
	kind       cluster.Kind
	namespaced bool
	// build fills c.meta from the published type, checks and converts.
	build func(c *check, text []byte) cluster.Object
	// take is build for a decoded object. It returns false for another type.
	take func(c *check, in metav1.Object) (cluster.Object, bool)
}

// identity reads an object's key before it is decoded, so that a problem can name a refused object.
// Name is empty if there is none.
func (r reader) identity(n *yaml.Node) cluster.Key {
	k := cluster.Key{Kind: r.kind}
	meta := child(n, "metadata")
	if meta == nil {
		return k
	}
	if v := child(meta, "name"); v != nil {
		k.Name = clipName(v.Value)
	}
	if !r.namespaced {
		return k
	}
	k.Namespace = metav1.NamespaceDefault
	if v := child(meta, "namespace"); v != nil && v.Value != "" {
		k.Namespace = clipName(v.Value)
	}
	return k
}

// clipName shortens a name that is longer than any valid name. Its object is refused.
func clipName(s string) string { return s[:min(len(s), 254)] }

// read makes the reader of a published type.
func read[T any, P interface {
	*T
	metav1.Object
}](kind cluster.Kind, scope scope, convert func(*check, P) cluster.Object) reader {
	convertChecked := func(c *check, in P) cluster.Object {
		c.metadata(in, scope)
		return convert(c, in)
	}
	r := reader{kind: kind, namespaced: scope == namespaced}
	r.build = func(c *check, text []byte) cluster.Object {
		in := P(new(T))
		if !c.unmarshal(text, in) {
			return nil
		}
		return convertChecked(c, in)
	}
	r.take = func(c *check, in metav1.Object) (cluster.Object, bool) {
		if in, ok := in.(P); ok {
			return convertChecked(c, in), true
		}
		return nil, false
	}
	return r
}

// scope is whether a kind has namespaces.
type scope int

const (
	namespaced scope = iota
	clusterWide
)

// object decodes the item. The object is valid only if c.problems is empty.
func (c *check) object(r reader) cluster.Object {
	text, lines, err := toJSON(c.node)
	if err != nil {
		c.problems = append(c.problems, c.problem(err.line, "", err.reason))
		return nil
	}
	c.lines = lines
	obj := r.build(c, text)
	c.settle()
	return obj
}

// unmarshal decodes strictly: unknown and duplicate fields are faults.
func (c *check) unmarshal(text []byte, in any) bool {
	strict, err := json.UnmarshalStrict(text, in)
	if err != nil {
		c.mistyped(text, in, err)
		return false
	}
	for _, err := range strict[:min(len(strict), maxReasons)] {
		var at json.FieldError
		if !errors.As(err, &at) {
			c.problems = append(c.problems, c.problem(c.node.Line, "", err.Error()))
			continue
		}
		reason, _, _ := strings.Cut(err.Error(), " \"")
		if reason == "unknown field" {
			reason = unknownField(reflect.TypeOf(in), at.FieldPath())
		}
		c.problems = append(c.problems, c.problem(lineOf(c.node, at.FieldPath()), at.FieldPath(), reason))
	}
	return len(strict) == 0
}

// mistyped reports a value of a wrong type. The strict decoder does not give its place, so the
// standard decoder is used.
func (c *check) mistyped(text []byte, in any, err error) {
	var wrong *gojson.UnmarshalTypeError
	if !errors.As(gojson.Unmarshal(text, in), &wrong) || wrong.Field == "" {
		c.problems = append(c.problems, c.problem(c.node.Line, "", err.Error()))
		return
	}
	reason := fmt.Sprintf("a %s stands where %s is expected", wrong.Value, jsonName(wrong.Type.Kind()))
	if wrong.Value == "bool" {
		reason += " (yes, no, on, off, y and n are bools unless they are quoted)"
	}
	c.problems = append(c.problems, c.problem(c.lines.at(int(wrong.Offset)), wrong.Field, reason))
}

// jsonName is the JSON type for a Go type, in words.
func jsonName(kind reflect.Kind) string {
	switch kind {
	case reflect.Struct, reflect.Map:
		return "a mapping"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	}
	return "a number of type " + kind.String()
}

// settle turns the faults into problems with lines.
func (c *check) settle() {
	for _, e := range c.faults[:min(len(c.faults), maxReasons)] {
		reason := e.ErrorBody()
		c.problems = append(c.problems, c.problem(lineOf(c.node, e.Field), e.Field, reason))
	}
	if more := len(c.faults) - maxReasons; more > 0 {
		c.problems = append(c.problems, c.problem(c.node.Line, "", fmt.Sprintf("and %d more", more)))
	}
}

func (c *check) problem(line int, path, reason string) Problem {
	return Problem{Source: cluster.Source{File: c.file, Line: line}, Key: c.meta.Key, Field: clipTo(path, maxPath), Reason: clipTo(reason, maxReason)}
}
