package policy

import (
	"testing"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/tables"
)

// TestRulesKeepTheirIDs edits a policy around its rules. A rule keeps its conjunction id, and
// with it its counters, as long as it is the same rule.
func TestRulesKeepTheirIDs(t *testing.T) {
	rule := func(name string, a cluster.RuleAction, port uint16) cluster.PolicyRule {
		r := antreaRule(a, nil, cluster.PolicyPort{Protocol: cluster.TCP, Port: cluster.PortRef{Number: port}})
		r.Name = name
		r.AppliedTo = []cluster.AppliedTo{{Pods: &cluster.Selector{}}}
		return r
	}
	allow, drop, reject := rule("a", cluster.ActionAllow, 1), rule("b", cluster.ActionDrop, 2), rule("c", cluster.ActionReject, 3)
	nameless, other := rule("", cluster.ActionDrop, 4), rule("", cluster.ActionDrop, 5)
	for _, s := range []struct {
		name          string
		before, after []cluster.PolicyRule
		want          []int // for each rule after, its index before; -1: new
	}{
		{"one comes before", ruleList(allow, drop), ruleList(reject, allow, drop), []int{-1, 0, 1}},
		{"the first goes", ruleList(allow, drop, reject), ruleList(drop, reject), []int{1, 2}},
		{"two change places", ruleList(allow, drop), ruleList(drop, allow), []int{1, 0}},
		{"another port", ruleList(allow, drop), ruleList(allow, rule("b", cluster.ActionDrop, 7)), []int{0, 1}},
		{"another port, another place", ruleList(allow, drop), ruleList(rule("b", cluster.ActionDrop, 7), allow), []int{1, 0}},
		{"another action", ruleList(allow), ruleList(rule("a", cluster.ActionReject, 1)), []int{0}},
		{"another action, another place", ruleList(allow, drop), ruleList(drop, rule("a", cluster.ActionReject, 1)), []int{1, -1}},
		{"another name", ruleList(allow), ruleList(rule("z", cluster.ActionAllow, 1)), []int{-1}},
		{"no names", ruleList(nameless, other), ruleList(other, nameless), []int{1, 0}},
		{"no name, another port", ruleList(nameless), ruleList(other), []int{0}},
		{"twice the same", ruleList(nameless, nameless), ruleList(nameless, nameless, nameless), []int{0, 1, -1}},
	} {
		t.Run(s.name, func(t *testing.T) {
			w := shop()
			w.put(cnp("p", "", 5, s.before, nil))
			w.update(t)
			before := idsByIndex(w.policies.Rules())
			if len(before) != len(s.before) {
				t.Fatalf("%d rules stand, want %d", len(before), len(s.before))
			}
			w.put(cnp("p", "", 5, s.after, nil))
			w.update(t)
			after := idsByIndex(w.policies.Rules())
			for i, from := range s.want {
				was := -1
				for j, id := range before {
					if id == after[i] {
						was = j
					}
				}
				if was != from {
					t.Errorf("rule %d was %d, want %d (ids %v, then %v)", i, was, from, before, after)
				}
			}
		})
	}
}

// idsByIndex returns the conjunction ids of ingress rules without parts.
func idsByIndex(rules []*RealisedRule) map[int]uint32 {
	ids := map[int]uint32{}
	for _, r := range rules {
		if r.Key.Direction == tables.Ingress {
			ids[r.Key.Index] = r.Rule.ID
		}
	}
	return ids
}
