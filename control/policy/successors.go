package policy

import (
	"reflect"

	"github.com/antrail/antrail/control/numbers"
)

// Rules of an edited policy and their successors. The successor of a rule keeps its
// conjunction id, and with it the counters and the connections that the rule has allowed.
//
//  1. A rule with the same content is the successor, wherever it stands now.
//  2. Otherwise it is the rule of the same name, or of the same place without a name.

// successors maps each spec of an old plan to its successor, if it has one.
func successors(old, next []*policySpec) map[*policySpec]*policySpec {
	of, taken := map[*policySpec]*policySpec{}, map[*policySpec]bool{}
	for _, same := range []func(a, b *policySpec) bool{
		func(a, b *policySpec) bool { return samePlace(a, b) && sameContent(a, b) },
		sameContent,
		func(a, b *policySpec) bool { return samePlace(a, b) && a.name == b.name },
		sameNameAndEffect,
	} {
		for _, s := range old {
			for _, t := range next {
				if of[s] == nil && !taken[t] && same(s, t) {
					of[s], taken[t] = t, true
				}
			}
		}
	}
	return of
}

func samePlace(a, b *policySpec) bool { return a.key == b.key }

// sameContent reports whether two specs of a policy say the same in any place.
func sameContent(a, b *policySpec) bool {
	if a.key.Direction != b.key.Direction || a.isolates != b.isolates || a.name != b.name || a.action != b.action {
		return false
	}
	x, y := a.wording(), b.wording()
	x.key, x.order, y.key, y.order = RuleKey{}, numbers.Order{}, RuleKey{}, numbers.Order{}
	return reflect.DeepEqual(x, y)
}

// sameNameAndEffect asks for more than the name, because the rule moves. If its action changed
// too, the entries of both places would clash for a moment.
func sameNameAndEffect(a, b *policySpec) bool {
	return a.name != "" && a.name == b.name && a.key.Direction == b.key.Direction &&
		a.kind == b.kind && a.action == b.action && a.log == b.log && (len(a.l7) > 0) == (len(b.l7) > 0)
}
