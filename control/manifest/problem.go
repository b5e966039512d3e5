package manifest

import (
	"strings"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/internal/printable"
)

// Problem is a part of a text that is not in force, with the reason.
type Problem struct {
	Source cluster.Source // file and line
	Key    cluster.Key    // of the object; zero if unknown
	Field  string         // such as spec.ports[0].port; empty for the whole object
	Reason string
	// Ignored is set for a kind that is not used here. That is not a fault.
	Ignored bool
}

// Error gives file:line: object: field: reason.
func (p Problem) Error() string {
	parts := []string{p.Source.String()}
	if p.Key != (cluster.Key{}) {
		parts = append(parts, p.Key.String())
	}
	if p.Field != "" {
		parts = append(parts, p.Field)
	}
	return printable.Text(strings.Join(append(parts, p.Reason), ": "))
}

// LastGoodStays ends the reason of a problem whose object keeps its last good state.
const LastGoodStays = "; the last good one stays"

// EditText describes a refused edit: FILE:LINE: FIELD: REASON. For an object of an API server, its
// name replaces the place.
func (p Problem) EditText() string {
	parts := []string{p.Source.String()}
	if p.Source.Line == 0 && p.Key != (cluster.Key{}) {
		parts[0] = p.Key.String()
	}
	if p.Field != "" {
		parts = append(parts, p.Field)
	}
	return printable.Text(strings.Join(append(parts, strings.TrimSuffix(p.Reason, LastGoodStays)), ": "))
}
