package manifest

import (
	"reflect"
	"slices"
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
	group := groupOf(version)
	var there []string
	for known := range readers {
		if groupOf(known.apiVersion) == group && known.kind != kind {
			there = append(there, known.kind)
		}
	}
	return flow.Suggest(kind, there)
}

// otherVersions are the types that a kind is read as when the apiVersion is none of
// theirs: those of its API group, or of any, if its own is one that others are read of or
// one of Kubernetes' own, which have no dot. Such an object is a mistake: no API server
// would take it, or it is newer or older than what is read here. nil for kinds of others.
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
