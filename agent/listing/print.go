package listing

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/antrail/antrail/agent/api"
	"sigs.k8s.io/yaml"
)

// print prints items in the form of the options.
func (v *View) print(w io.Writer, columns []api.Column, items []api.Item) error {
	switch {
	case v.template != nil:
		return v.printTemplate(w, items)
	case v.Output == "name":
		return v.printNames(w, items)
	case v.Output == "json", v.Output == "yaml":
		return v.printRecords(w, items)
	}
	var lines [][]string
	if !v.headed && !v.NoHeaders {
		heading := []string{}
		for _, c := range columns {
			heading = append(heading, c.Name)
		}
		lines = append(lines, heading)
	}
	v.headed = true
	for _, i := range items {
		lines = append(lines, i.Lines...)
	}
	return v.printLines(w, lines)
}

// printLines prints lines in the columns of earlier lines.
func (v *View) printLines(w io.Writer, lines [][]string) error {
	for _, l := range lines {
		v.widths.Fit(l)
	}
	var b bytes.Buffer
	for _, l := range lines {
		fmt.Fprintln(&b, v.widths.Pad(l))
	}
	_, err := w.Write(b.Bytes())
	return err
}

// printNames prints kind/name, which `antrail get` accepts.
func (v *View) printNames(w io.Writer, items []api.Item) error {
	for _, i := range items {
		kind, _, isObject := strings.Cut(i.Object, "/")
		name := i.Name
		if isObject {
			name = strings.ToLower(kind) + "/" + name
		}
		if _, err := fmt.Fprintln(w, name); err != nil {
			return err
		}
	}
	return nil
}

// single says whether the options name one object: it is printed without a list.
func (v *View) single(items []api.Item) bool { return len(v.Names) == 1 && len(items) == 1 }

// records are the items as JSON: a list, or a single object.
func (v *View) records(items []api.Item) ([]byte, error) {
	if v.single(items) {
		return items[0].Record, nil
	}
	records := []json.RawMessage{}
	for _, i := range items {
		records = append(records, i.Record)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(records)
	return b.Bytes(), err
}

func (v *View) printRecords(w io.Writer, items []api.Item) error {
	text, err := v.records(items)
	if err != nil {
		return err
	}
	if v.Output == "yaml" {
		if text, err = yaml.JSONToYAML(text); err != nil {
			return err
		}
		_, err = w.Write(text)
		return err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, bytes.TrimSpace(text), "", "  "); err != nil {
		return err
	}
	_, err = fmt.Fprintln(w, b.String())
	return err
}

// printTemplate executes the template on the object, or on the list as {"items": [...]}, as
// kubectl does.
func (v *View) printTemplate(w io.Writer, items []api.Item) error {
	text, err := v.records(items)
	if err != nil {
		return err
	}
	value, err := valueOf(text)
	if err != nil {
		return err
	}
	if !v.single(items) {
		value = map[string]any{"items": value}
	}
	var b bytes.Buffer
	if err := v.template.Execute(&b, value); err != nil {
		return fmt.Errorf("--output %s: %w; -o json shows the fields, and a list of objects is .items", v.Output, err)
	}
	_, err = w.Write(b.Bytes())
	return err
}
