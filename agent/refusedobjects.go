package agent

import (
	"slices"
	"strings"

	"github.com/antrail/antrail/control"
)

// Objects that are refused, and of which no earlier state is in force: nothing of them is
// in the store, so the Reconciler does not know them. get shows them all the same, as
// refused: whoever applied one looks for it there.

// problems are the faults of the source's objects now.
func (l *live) problems() []control.Problem {
	if l.api != nil {
		return l.api.Problems()
	}
	if wrong := l.wrong.Load(); wrong != nil {
		return *wrong
	}
	return nil
}

// refusedObjects are the refused objects of some kinds. Each has its place and its first
// fault. Objects with an earlier state in force are left out.
func (p *pipeline) refusedObjects(of func(control.Kind) bool) (all []control.Status) {
	if p.problems == nil {
		return nil
	}
	for _, problem := range p.problems() {
		k := problem.Key
		known := slices.ContainsFunc(all, func(s control.Status) bool { return s.Object == k })
		if problem.Ignored || k.Name == "" || known || !of(k.Kind) || p.objects.Object(k) != nil {
			continue
		}
		parts := []string{problem.Source.String(), problem.Field, problem.Reason}
		reason := strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ": ")
		all = append(all, control.Status{Object: k, State: control.Refused, Reason: reason})
	}
	return all
}

// kindIs is for objects of one kind.
func kindIs(kind control.Kind) func(control.Kind) bool {
	return func(k control.Kind) bool { return k == kind }
}

// anyKind is for all objects.
func anyKind(control.Kind) bool { return true }

// isPolicy is for policies, those that antrail does not enforce among them.
func isPolicy(kind control.Kind) bool { return strings.Contains(string(kind), "NetworkPolicy") }

func refusedService(s control.Status) control.ServiceRow { return control.ServiceRow{Status: s} }
func refusedPod(s control.Status) control.PodRow         { return control.PodRow{Status: s} }
func refusedEgress(s control.Status) control.EgressRow   { return control.EgressRow{Status: s} }
func refusedPolicy(s control.Status) control.PolicyRow {
	return control.PolicyRow{Status: s, Rules: []control.RuleRow{}}
}
func refusedTrafficControl(s control.Status) control.TrafficControlRow {
	return control.TrafficControlRow{Status: s}
}
