// Command reference writes docs/configuration.md: every key of the agent's configuration file,
// from the Go types, their comments and their tags:
//
//	json     the key
//	unit     the unit of a number
//	default  a default that depends on the Node, in words; others are config.Parse's
//	since    the version of the key; none for the first one
//
// A test beside it fails if the page is stale. To write it, from the top of the repository:
//
//	go run ./docs/reference
package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/antrail/antrail/agent/config"
)

// page is the path of the reference, from the top of the repository.
const page = "docs/configuration.md"

const head = `# Configuration reference

Every key of the file that ` + "`antrail agent --config`" + ` reads, made of the program's own types. [Configure antrail](configure.md) has whole files.

A key without a default must be set, or is off if it is not set. A key is of the first version unless the text says since when.
Paths are relative to the file. Write a time as ` + "`90s`, `2h` or `20us`" + `. A test keeps this page; ` + "`go run ./docs/reference`" + ` writes it.
`

// packages are those with types of the configuration.
var packages = []string{"agent/config", "switchd/local"}

func main() {
	text, err := generate(".")
	if err == nil {
		err = os.WriteFile(page, []byte(text), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(1)
	}
}

// generate makes the page of the repository at a directory.
func generate(top string) (string, error) {
	r := reference{comments: map[string]string{}}
	for _, dir := range packages {
		if err := r.read(top, dir); err != nil {
			return "", err
		}
	}
	r.text.WriteString(head)
	d, err := config.Parse([]byte("{nodeName: any, kubernetes: {}}"))
	if err != nil {
		return "", err
	}
	r.section("", reflect.TypeFor[config.Config](), reflect.ValueOf(d).Elem())
	return r.text.String(), errors.Join(r.faults...)
}

// reference is the page that is being written.
type reference struct {
	comments map[string]string // of fields, by package directory, type and field
	text     strings.Builder
	faults   []error
}

// read collects the comments of all struct fields of a package.
func (r *reference) read(top, dir string) error {
	files, err := filepath.Glob(filepath.Join(top, dir, "*.go"))
	if err != nil {
		return err
	}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if t, ok := n.(*ast.TypeSpec); ok {
				r.readType(dir, t)
			}
			return true
		})
	}
	return nil
}

// readType collects the comments of a struct's fields.
func (r *reference) readType(dir string, t *ast.TypeSpec) {
	s, ok := t.Type.(*ast.StructType)
	if !ok {
		return
	}
	for _, f := range s.Fields.List {
		for _, name := range f.Names {
			r.comments[dir+"."+t.Name.Name+"."+name.Name] = strings.Join(strings.Fields(f.Doc.Text()), " ")
		}
	}
}

// section writes the table of a struct's keys, and the tables of the structs below it.
func (r *reference) section(above string, t reflect.Type, defaults reflect.Value) {
	title := "Top level"
	if above != "" {
		title = above
	}
	fmt.Fprintf(&r.text, "\n## %s\n\n| key | type | default | meaning |\n|---|---|---|---|\n", title)
	var below []func()
	for _, f := range reflect.VisibleFields(t) {
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if key == "" || key == "-" {
			continue
		}
		var value reflect.Value
		if defaults.IsValid() {
			value = defaults.FieldByIndex(f.Index)
		}
		path := strings.TrimPrefix(above+"."+key, ".")
		fmt.Fprintf(&r.text, "| `%s` | %s | %s | %s |\n", path, r.typeOf(path, f), defaultOf(f, value), r.meaning(path, t, f))
		if s, list := structBelow(f.Type); s != nil {
			if list {
				path += "[]"
			}
			value = reflect.Indirect(value)
			if value.Kind() != reflect.Struct { // of a list, or of a section without defaults
				value = reflect.Value{}
			}
			below = append(below, func() { r.section(path, s, value) })
		}
	}
	for _, write := range below {
		write()
	}
}

// structBelow returns the struct of keys in a field's type, or nil, and whether it is a list of
// them.
func structBelow(t reflect.Type) (s reflect.Type, list bool) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		list = list || t.Kind() == reflect.Slice
		t = t.Elem()
	}
	if t.Kind() == reflect.Struct && hasKeys(t) {
		return t, list
	}
	return nil, false
}

// hasKeys reports whether a struct is a section of the file, not a single value.
func hasKeys(t reflect.Type) bool {
	for _, f := range reflect.VisibleFields(t) {
		if f.Tag.Get("json") != "" {
			return true
		}
	}
	return false
}

// meaning returns the comment of a field as a sentence without the field's Go name.
func (r *reference) meaning(path string, t reflect.Type, f reflect.StructField) string {
	dir := strings.TrimPrefix(t.PkgPath(), "github.com/antrail/antrail/")
	text := r.comments[dir+"."+t.Name()+"."+f.Name]
	rest, ok := strings.CutPrefix(text, f.Name+" ")
	if !ok {
		r.faults = append(r.faults, fmt.Errorf("%s: the comment of %s.%s is %q; it begins with the field's name", path, t.Name(), f.Name, text))
		return text
	}
	for _, verb := range []string{"is ", "are "} {
		rest = strings.TrimPrefix(rest, verb)
	}
	if since := f.Tag.Get("since"); since != "" {
		rest += " Since " + since + "."
	}
	return strings.ReplaceAll(strings.ToUpper(rest[:1])+rest[1:], "|", `\|`)
}
