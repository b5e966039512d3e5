package trace

import (
	"fmt"
	"slices"
	"strings"
)

// Who is behind a verdict.

// entryReason is the reason of a drop that an entry says; dataplane.DropByEntry has
// this name.
const entryReason = "entry"

// By is what wants the entry, each as Kind/namespace/name (rule): policies, if there
// are any, else whatever it is, three of them at most. "" when nothing is known.
func (e *Entry) By() string {
	all := policies(e.Objects)
	if all == nil {
		all = e.Objects
	}
	var names []string
	for i, o := range all {
		if i == mostObjects {
			names = append(names, fmt.Sprintf("%d more", len(all)-i))
			break
		}
		o.Field = ""
		names = append(names, o.String())
	}
	return strings.Join(names, ", ")
}

// policies are those among objects.
func policies(all []Object) (found []Object) {
	for _, o := range all {
		if kind, _, _ := strings.Cut(o.Object, "/"); strings.HasSuffix(kind, "NetworkPolicy") {
			found = append(found, o)
		}
	}
	return found
}

// By is because of what the packet goes nowhere, as Entry.By has it: what wants the
// entry that dropped it, or the last policy that it met on its way to the agent and
// nobody else. "" when it goes somewhere, when nothing is known, and when the entry is
// one that every Node has.
func (w *Walk) By() string {
	v := &w.Verdict
	refused := v.PacketIn && len(v.Outputs) == 0
	if v.Reason != entryReason && !refused {
		return ""
	}
	for i := len(w.Steps) - 1; i >= 0; i-- {
		s := &w.Steps[i]
		switch {
		case s.Kind != StepEntry || s.Entry == nil:
		case refused && policies(s.Entry.Objects) != nil:
			return s.Entry.By()
		case !refused && s.Table == v.Table:
			if len(ofCluster(s.Entry.Objects)) == 0 {
				return ""
			}
			return s.Entry.By()
		}
	}
	return ""
}

// ofCluster are objects without what every Node has.
func ofCluster(all []Object) []Object {
	return slices.DeleteFunc(slices.Clone(all), func(o Object) bool { return strings.HasPrefix(o.Object, "NodeConfig/") })
}
