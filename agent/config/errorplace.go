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

// Where a configuration cannot be read: the decoder says what is wrong with a value,
// and mostly not which value that is.

// misread is an error of the decoder with the keys of all values that cannot be read,
// such as gateway.addresses[0]: each is read once more, alone. A text that is no YAML
// has the error as it was, with its line.
func misread(text []byte, err error) error {
	var whole any
	if yaml.UnmarshalStrict(text, &whole) != nil {
		return errors.New(cutText(err, "error converting YAML to JSON: yaml: "))
	}
	var f faults
	eachValue(whole, "", func(key string, alone any) {
		b, _ := json.Marshal(alone) // of a tree of JSON: it cannot fail
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
		return fmt.Errorf("%s: %s is no %s", key, wrong.Value, kindText(wrong.Type))
	}
	if name, unknown := strings.CutPrefix(text, "json: unknown field "); unknown {
		name = strings.Trim(name, `"`)
		above, _, _ := strings.Cut("."+key, "."+name)
		known := manifest.FieldNames(reflect.TypeFor[Config](), strings.Split(above, ".")[1:])
		meant := flow.Suggest(name, known)
		if meant == "" {
			meant = "; there are " + strings.Join(known, ", ")
		}
		return fmt.Errorf("%s: there is no such key%s", strings.TrimPrefix(above+"."+name, "."), meant)
	}
	return fmt.Errorf("%s: %s", key, text)
}

// kindText is what a value of a type is in YAML.
func kindText(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		return "set of keys"
	case reflect.Slice:
		return "list"
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Float64:
		return "number"
	}
	return "whole number that fits"
}

// eachValue hands on every value at an end of a tree, with its key from the root, in a
// tree that has nothing else.
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
