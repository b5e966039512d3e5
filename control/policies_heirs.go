package control

import "reflect"

// Which rule of a policy's new plan is which of the old one. It keeps that
// one's conjunction id, and with it what was counted for it and the
// connections that it has allowed. A rule that says the same is the same,
// wherever it stands now; else one of the same name, or one without a name in
// the same place, is the same with changes.

// heirs finds the heirs of an old plan's specs, at most one each.
func heirs(old, next []*policySpec) map[*policySpec]*policySpec {
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

// sameContent reports whether two specs of a policy say the same, whatever
// their place.
func sameContent(a, b *policySpec) bool {
	if a.key.Direction != b.key.Direction || a.isolates != b.isolates || a.name != b.name || a.action != b.action {
		return false
	}
	x, y := a.wording(), b.wording()
	x.key, x.order, y.key, y.order = RuleKey{}, ruleOrder{}, RuleKey{}, ruleOrder{}
	return reflect.DeepEqual(x, y)
}

// sameNameAndEffect asks for more than the name, since the rule moves: were its
// action another, the entries of both places would clash for a moment.
func sameNameAndEffect(a, b *policySpec) bool {
	return a.name != "" && a.name == b.name && a.key.Direction == b.key.Direction &&
		a.kind == b.kind && a.action == b.action && a.log == b.log && (len(a.l7) > 0) == (len(b.l7) > 0)
}
