package pipeline

import (
	"slices"
	"strings"

	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/ledger"
)

// Objects that are refused, and of which no earlier state is in force: nothing of them is
// in the store, so the Reconciler does not know them. get shows them all the same, as
// refused: whoever applied one looks for it there.

// RefusedObjects are the refused objects of some kinds. Each has its place and its first
// fault. Objects with an earlier state in force are left out.
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
		all = append(all, control.Status{Object: k, State: ledger.Refused, Reason: reason})
	}
	return all
}

// KindIs is for objects of one kind.
func KindIs(kind cluster.Kind) func(cluster.Kind) bool {
	return func(k cluster.Kind) bool { return k == kind }
}

// AnyKind is for all objects.
func AnyKind(cluster.Kind) bool { return true }
