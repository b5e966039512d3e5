package control

import (
	"reflect"
	"strings"

	"github.com/antrail/antrail/flow"
)

// Names that nobody knows, and the ones that may be meant.

// unknownField is what is wrong with the field at a path such as spec.ingress[0].form
// of what is read into a type.
func unknownField(t reflect.Type, path string) string {
	above := strings.Split(path, ".")
	last := len(above) - 1
	known := FieldNames(t, above[:last])
	meant := flow.Suggest(above[last], known)
	if meant == "" && len(known) > 0 && len(known) <= mostListed {
		meant = "; there are " + strings.Join(known, ", ")
	}
	return "unknown field" + meant
}

// mostListed is how many fields are listed for one that is like none of them.
const mostListed = 12

// FieldNames are the fields of a type's JSON, or of what is below some of its fields,
// such as peers[0]; nil where any name is taken.
func FieldNames(t reflect.Type, below []string) (names []string) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	for _, field := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if len(below) > 0 {
			first, _, _ := strings.Cut(below[0], "[")
			if strings.EqualFold(name, first) {
				return FieldNames(field.Type, below[1:])
			}
		} else if name != "" && name != "-" {
			names = append(names, name)
		}
	}
	return names
}

// misspeltKind is the kind of the same API group that may be meant by one that is not
// used here, as " (did you mean Service?)"; "" when none is like it, and for one that is
// used in another version.
func misspeltKind(version, kind string) string {
	group, _, _ := strings.Cut(version, "/")
	var there []string
	for known := range readers {
		if of, _, _ := strings.Cut(known.apiVersion, "/"); of == group && known.kind != kind {
			there = append(there, known.kind)
		}
	}
	return flow.Suggest(kind, there)
}
