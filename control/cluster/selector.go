package cluster

import (
	"slices"
	"sort"
	"strings"
)

// A selector chooses objects by their labels, as metav1.LabelSelector does:
// every requirement must hold. The equality pairs of matchLabels become In
// requirements with one value, so that there is one form, and one text for
// selectors that mean the same.

// Selector is a conjunction of requirements on labels, in canonical order. The
// zero Selector has none and matches everything; where "no selector" means
// something else, a *Selector is nil.
type Selector struct {
	requirements []Requirement
}

// Operator is the relation of a Requirement.
type Operator string

// The operators of metav1.LabelSelector. NotIn holds also for objects without
// the label.
const (
	In           Operator = "In"
	NotIn        Operator = "NotIn"
	Exists       Operator = "Exists"
	DoesNotExist Operator = "DoesNotExist"
)

// Requirement is one condition on one label. Values is sorted, without
// duplicates, and empty for Exists and DoesNotExist.
type Requirement struct {
	Label  string
	Op     Operator
	Values []string
}

// NewSelector makes a Selector that holds when all requirements do. The
// requirements are not checked, see decode.go; they are copied.
func NewSelector(requirements ...Requirement) Selector {
	rs := make([]Requirement, 0, len(requirements))
	for _, r := range requirements {
		values := slices.Clone(r.Values)
		slices.Sort(values)
		rs = append(rs, Requirement{r.Label, r.Op, slices.Compact(values)})
	}
	sort.SliceStable(rs, func(i, j int) bool { return rs[i].String() < rs[j].String() })
	return Selector{requirements: slices.CompactFunc(rs, func(a, b Requirement) bool {
		return a.String() == b.String()
	})}
}

// SelectLabels makes the Selector that asks for each of the labels.
func SelectLabels(labels Labels) Selector {
	rs := make([]Requirement, 0, len(labels))
	for k, v := range labels {
		rs = append(rs, Requirement{k, In, []string{v}})
	}
	return NewSelector(rs...)
}

// Matches reports whether every requirement holds for labels.
func (s Selector) Matches(labels Labels) bool {
	for i := range s.requirements {
		if !s.requirements[i].Matches(labels) {
			return false
		}
	}
	return true
}

// Empty reports whether the selector matches everything.
func (s Selector) Empty() bool { return len(s.requirements) == 0 }

// Requirements returns the requirements in canonical order; not to be written.
func (s Selector) Requirements() []Requirement { return s.requirements }

// String is the same for selectors with the same requirements, whatever their
// order was, in the syntax of kubectl's -l: "app in (a,b),!old".
func (s Selector) String() string {
	parts := make([]string, len(s.requirements))
	for i, r := range s.requirements {
		parts[i] = r.String()
	}
	return strings.Join(parts, ",")
}

// Matches reports whether the requirement holds for labels.
func (r *Requirement) Matches(labels Labels) bool {
	value, has := labels[r.Label]
	switch r.Op {
	case Exists:
		return has
	case DoesNotExist:
		return !has
	case NotIn:
		return !has || !slices.Contains(r.Values, value)
	}
	return has && slices.Contains(r.Values, value)
}

// String gives the requirement in the syntax of kubectl's -l.
func (r Requirement) String() string {
	switch {
	case r.Op == Exists:
		return r.Label
	case r.Op == DoesNotExist:
		return "!" + r.Label
	case r.Op == In && len(r.Values) == 1:
		return r.Label + "=" + r.Values[0]
	case r.Op == NotIn && len(r.Values) == 1:
		return r.Label + "!=" + r.Values[0]
	}
	return r.Label + " " + strings.ToLower(string(r.Op)) + " (" + strings.Join(r.Values, ",") + ")"
}
