package cluster

import (
	"slices"
	"sort"
	"strings"
)

// Selector chooses objects by their labels, as metav1.LabelSelector does: every requirement
// must hold. The pairs of matchLabels become In requirements with one value. The order is
// canonical, so selectors that mean the same have the same text.
//
// The zero Selector has no requirement and matches everything. A nil *Selector means that
// there is no selector.
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

// NewSelector makes a Selector that holds if all requirements hold. It copies the
// requirements and does not check them; package control/manifest does.
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

// SelectLabels makes the Selector that requires each of the labels.
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

// Requirements returns the requirements in canonical order. The caller must not write them.
func (s Selector) Requirements() []Requirement { return s.requirements }

// String gives the requirements in canonical order, in the syntax of kubectl's -l:
// "app in (a,b),!old".
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
