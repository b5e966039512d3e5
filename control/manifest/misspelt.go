package manifest

import (
	"reflect"
	"slices"
	"strings"

	"github.com/antrail/antrail/flow"
)

// Suggestions for unknown names.

// unknownField is the fault of an unknown field at a path in a type, such as spec.ingress[0].form.
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

// mostListed is the limit of fields to list if no field is similar.
const mostListed = 12

// FieldNames returns the JSON fields of a type, or those below some of its fields, such as peers[0].
// It returns nil if any name is valid.
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

// misspeltKind suggests a kind of the same API group that is similar to an unknown one, as
// " (did you mean Service?)". It returns "" if none is similar.
func misspeltKind(version, kind string) string {
	group := groupOf(version)
	var there []string
	for known := range readers {
		if groupOf(known.apiVersion) == group && known.kind != kind {
			there = append(there, known.kind)
		}
	}
	return flow.Suggest(kind, there)
}

// otherVersions returns the types of a kind if it is read in other apiVersions only. Candidates are
// first those of the same API group. If there is none, and the group is one that antrail reads or one
// of Kubernetes' own (without a dot), those of any group count. An object with another apiVersion is a
// mistake, or newer or older than antrail. For kinds of other projects it returns nil.
func otherVersions(version, kind string) []typeName {
	group := groupOf(version)
	var same, all []typeName
	ours := !strings.Contains(group, ".")
	for known := range readers {
		here := groupOf(known.apiVersion) == group
		ours = ours || here
		switch {
		case known.kind != kind:
		case here:
			same = append(same, known)
		default:
			all = append(all, known)
		}
	}
	if same == nil && ours {
		same = all
	}
	slices.SortFunc(same, func(a, b typeName) int { return strings.Compare(b.apiVersion, a.apiVersion) }) // beta before alpha
	return same
}

// groupOf is the API group of an apiVersion; "" for the core group.
func groupOf(version string) string {
	group, _, named := strings.Cut(version, "/")
	if !named {
		return ""
	}
	return group
}
