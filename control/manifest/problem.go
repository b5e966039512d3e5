package manifest

import (
	"strings"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/internal/printable"
)

// Problem is something in a text that is not in force, and why.
type Problem struct {
	Source cluster.Source // where, to the line
	Key    cluster.Key    // of the object; zero when it is not known
	Field  string         // as spec.ports[0].port; empty for the whole object
	Reason string
	// Ignored is set for a kind that is not used here: nothing is wrong.
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

// LastGoodStays ends the reason of a problem whose object stays as it was.
const LastGoodStays = "; the last good one stays"

// EditText is a problem as a refused edit: FILE:LINE: FIELD: REASON. Of an object that
// comes from an API server its name stands for the place.
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
