package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/antrail/antrail/control/manifest"
	"github.com/antrail/antrail/flow"
	"sigs.k8s.io/yaml"
)

// The place of errors: the decoder's error describes a fault, but rarely names the value that has
// it.

// misread adds the keys of all values that cannot be read, for example gateway.addresses[0]. It
// decodes each value alone to find them. If the text is not YAML, the error is the decoder's,
// with its line.
func misread(text []byte, err error) error {
	var whole any
	if yaml.UnmarshalStrict(text, &whole) != nil {
		return errors.New(cutText(err, "error converting YAML to JSON: yaml: "))
	}
	var f faults
	eachValue(whole, "", func(key string, alone any) {
		b, _ := json.Marshal(alone) // a tree of JSON: it cannot fail
		if wrong := yaml.UnmarshalStrict(b, &Config{}); wrong != nil {
			f = append(f, misreadValue(key, wrong))
		}
	})
	if f == nil {
		return err
	}
	return errors.Join(slices.CompactFunc(f, func(a, b error) bool { return a.Error() == b.Error() })...)
}

func cutText(err error, prefix string) string { return strings.TrimPrefix(err.Error(), prefix) }

// misreadValue says what is wrong with one value.
func misreadValue(key string, err error) error {
	text := cutText(err, "error unmarshaling JSON: while decoding JSON: ")
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return fmt.Errorf("%s: found %s, want %s", key, wrong.Value, kindText(wrong.Type))
	}
	if name, unknown := strings.CutPrefix(text, "json: unknown field "); unknown {
		name = strings.Trim(name, `"`)
		above, _, _ := strings.Cut("."+key, "."+name)
		known := manifest.FieldNames(reflect.TypeFor[Config](), strings.Split(above, ".")[1:])
		meant := flow.Suggest(name, known)
		if meant == "" {
			meant = "; there are " + strings.Join(known, ", ")
		}
		return fmt.Errorf("%s: unknown key%s", strings.TrimPrefix(above+"."+name, "."), meant)
	}
	return fmt.Errorf("%s: %s", key, text)
}

// kindText is the YAML word for values of a type.
func kindText(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		return "a set of keys"
	case reflect.Slice:
		return "a list"
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Float64:
		return "a number"
	}
	return "a whole number within range"
}

// eachValue calls tell for each leaf of a tree, with its key from the root and a tree that has
// only this leaf.
func eachValue(v any, key string, tell func(key string, alone any)) {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			at := strings.TrimPrefix(key+"."+k, ".")
			eachValue(v[k], at, func(key string, alone any) { tell(key, map[string]any{k: alone}) })
		}
		if len(v) > 0 {
			return
		}
	case []any:
		for i := range v {
			eachValue(v[i], fmt.Sprintf("%s[%d]", key, i), func(key string, alone any) { tell(key, []any{alone}) })
		}
		if len(v) > 0 {
			return
		}
	}
	tell(key, v)
}
