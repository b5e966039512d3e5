package trace

import (
	"fmt"
	"slices"
	"strings"
)

// The objects behind a verdict.

// entryReason is the reason of a drop by an entry. dataplane.DropByEntry has the same name.
const entryReason = "entry"

// By names the objects behind the entry, each as Kind/namespace/name (rule), at most three. It
// names policies if there are any. It is "" if none is known.
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

// policies are the policies among objects.
func policies(all []Object) (found []Object) {
	for _, o := range all {
		if kind, _, _ := strings.Cut(o.Object, "/"); strings.HasSuffix(kind, "NetworkPolicy") {
			found = append(found, o)
		}
	}
	return found
}

// By names the objects because of which the packet is lost, in the form of Entry.By. They are those
// of the dropping entry, or of the last policy before it went only to the agent. It is "" if the
// packet goes somewhere, if nothing is known, or if every Node has the entry.
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

// ofCluster are the objects without those that every Node has.
func ofCluster(all []Object) []Object {
	return slices.DeleteFunc(slices.Clone(all), func(o Object) bool { return strings.HasPrefix(o.Object, "NodeConfig/") })
}
