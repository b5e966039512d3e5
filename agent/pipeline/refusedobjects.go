package pipeline

import (
	"slices"
	"strings"

	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/ledger"
)

// Refused objects without an earlier state in force are not in the store, so the Reconciler
// does not know them. get shows them as refused, because a user who applied one looks for it
// there.

// RefusedObjects are the refused objects of the kinds that of accepts, with their place and
// first fault. Objects with an earlier state in force are left out.
func (p *Pipeline) RefusedObjects(of func(cluster.Kind) bool) (all []control.Status) {
	if p.Problems == nil {
		return nil
	}
	for _, problem := range p.Problems() {
		k := problem.Key
		known := slices.ContainsFunc(all, func(s control.Status) bool { return s.Object == k })
		if problem.Ignored || k.Name == "" || known || !of(k.Kind) || p.Objects.Object(k) != nil {
			continue
		}
		parts := []string{problem.Source.String(), problem.Field, problem.Reason}
		reason := strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ": ")
		all = append(all, control.Status{Object: k, Text: k.String(), State: ledger.Refused, Reason: reason})
	}
	return all
}

// KindIs accepts objects of one kind.
func KindIs(kind cluster.Kind) func(cluster.Kind) bool {
	return func(k cluster.Kind) bool { return k == kind }
}

// AnyKind accepts all objects.
func AnyKind(cluster.Kind) bool { return true }
