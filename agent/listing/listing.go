package listing

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/util/jsonpath"
)

// Options are what flags and arguments say. The zero value lists all objects in columns.
type Options struct {
	Kind      string   // the listed kind, for errors: pods
	Names     []string // NAME or NAMESPACE/NAME; nil for all
	Namespace string   // "" for all
	Selector  string   // of labels, as kubectl takes it; "" for all
	SortBy    string   // a field of the objects by JSONPath, as kubectl takes it; "" for the agent's order
	Output    string   // text, wide, name, json, yaml or jsonpath=TEMPLATE
	NoHeaders bool
}

// Forms are the values of Options.Output.
var Forms = []string{"text", "wide", "name", "json", "yaml", "jsonpath="}

// View prints listings with its options. It is for one goroutine.
type View struct {
	Options
	selector labels.Selector
	sortBy   *jsonpath.JSONPath // nil for the agent's order
	template *jsonpath.JSONPath // of the output; nil for other forms
	widths   Widths
	headed   bool // the heading is printed
}

// New checks options. The error names the wrong option and the possible values.
func New(o Options) (*View, error) {
	v := &View{Options: o}
	var err error
	if v.selector, err = labels.Parse(o.Selector); err != nil {
		return nil, fmt.Errorf("--selector %q: %w; want, for example, app=web,tier!=db", o.Selector, err)
	}
	if o.SortBy != "" {
		if v.sortBy, err = compile("--sort-by", o.SortBy); err != nil {
			return nil, err
		}
	}
	form, template, isPath := strings.Cut(o.Output, "=")
	switch {
	case isPath && form == "jsonpath":
		v.template, err = compile("--output jsonpath", template)
		return v, err
	case !isPath && form != "jsonpath" && slices.Contains(Forms, form):
		return v, nil
	}
	return nil, fmt.Errorf("--output is %s or jsonpath=TEMPLATE, such as jsonpath='{.items[*].object}'", strings.Join(Forms[:len(Forms)-1], ", "))
}

// compile reads a JSONPath template. A template without braces is one field: .packets or packets.
func compile(flag, text string) (*jsonpath.JSONPath, error) {
	full := text
	if !strings.Contains(text, "{") {
		full = "{." + strings.TrimPrefix(text, ".") + "}"
	}
	p := jsonpath.New("antrail")
	if err := p.Parse(full); err != nil || text == "" {
		return nil, fmt.Errorf("%s %q is not a JSONPath (%v); want, for example, {.items[*].object} or .packets", flag, text, err)
	}
	return p, nil
}

// Wide says whether to request more columns from the agent.
func (v *View) Wide() bool {
	return v.Output == "wide" || v.Output == "json" || v.Output == "yaml" || v.template != nil
}
