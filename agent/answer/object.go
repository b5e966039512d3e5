package answer

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"unicode"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/control/cluster"
	"sigs.k8s.io/yaml"
)

// answerObject answers GET /object: an object as the agent understood it, with the field names
// of package control, without empty fields. It is not the manifest: defaults are filled in, and
// unused fields are missing.

func (p *Answers) answerObject(w http.ResponseWriter, r *http.Request) {
	q, err := parseQuery(r.URL.Query())
	var o *api.ObjectText
	if err == nil {
		o, err = p.objectText(strings.TrimSpace(r.URL.Query().Get("what")))
	}
	if err != nil || q.json {
		WriteJSON(w, o, err)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprintf(w, "# %s, from %s\n%s", o.Object, o.Source, o.YAML)
}

// objectText finds an object by KIND/NAMESPACE/NAME or KIND/NAME.
func (p *Answers) objectText(what string) (*api.ObjectText, error) {
	if p.Objects == nil {
		return nil, pipeline.ErrNoObjects
	}
	k, ok, err := pipeline.ParseKey(what)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("%q is neither KIND/NAME nor KIND/NAMESPACE/NAME", what)
	}
	o := p.Objects.Object(k)
	if o == nil {
		return nil, fmt.Errorf("there is no %s", k)
	}
	text, err := yaml.Marshal(plain(reflect.ValueOf(o)))
	return &api.ObjectText{Object: k.String(), Source: o.Metadata().Source.String(), YAML: string(text)}, err
}

// plain converts a value for YAML: to a map, a list or a scalar; nil for an empty value.
func plain(v reflect.Value) any {
	if v.Kind() != reflect.Bool && v.IsZero() {
		return nil
	}
	switch x := v.Interface().(type) {
	case fmt.Stringer:
		return x.String()
	case [6]byte:
		return config.MAC(x).String()
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return plain(v.Elem())
	case reflect.Struct:
		return plainStruct(v)
	case reflect.Map:
		return plainMap(v)
	case reflect.Slice, reflect.Array:
		return plainList(v)
	}
	return v.Interface()
}

func plainMap(v reflect.Value) any {
	m := map[string]any{}
	for _, k := range v.MapKeys() {
		m[fmt.Sprint(k.Interface())] = plain(v.MapIndex(k))
	}
	return m
}

// plainList keeps the places of items. An empty item has a meaning, for example a rule that
// allows everything.
func plainList(v reflect.Value) any {
	list := []any{}
	for i := range v.Len() {
		item := plain(v.Index(i))
		if item == nil && v.Index(i).Kind() == reflect.Struct {
			item = map[string]any{}
		}
		list = append(list, item)
	}
	return list
}

// plainStruct has the fields of a struct that are not empty. Fields of an embedded struct
// become its own.
func plainStruct(v reflect.Value) any {
	m := map[string]any{}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if !f.IsExported() || f.Type == reflect.TypeFor[cluster.Source]() {
			continue
		}
		value := plain(v.Field(i))
		inner, isMap := value.(map[string]any)
		switch {
		case value == nil || value == false:
		case f.Anonymous && isMap:
			for name, field := range inner {
				m[name] = field
			}
		default:
			m[lowerFirst(f.Name)] = value
		}
	}
	return m
}

// lowerFirst converts a Go name to YAML: podCIDRs, ofPort, ips.
func lowerFirst(name string) string {
	rs := []rune(name)
	if strings.TrimSuffix(name, "s") == strings.ToUpper(strings.TrimSuffix(name, "s")) {
		return strings.ToLower(name)
	}
	for i := range rs {
		if i > 0 && i+1 < len(rs) && unicode.IsLower(rs[i+1]) || unicode.IsLower(rs[i]) {
			break
		}
		rs[i] = unicode.ToLower(rs[i])
	}
	return string(rs)
}
