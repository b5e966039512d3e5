package control

import (
	"strings"
	"testing"

	"github.com/antrail/antrail/tables"
)

// TestRulesKeepTheirIDs changes a policy around its rules: a rule keeps its
// conjunction id, and with it its counters, as long as it is the same rule.
func TestRulesKeepTheirIDs(t *testing.T) {
	rule := func(name string, a RuleAction, port uint16) PolicyRule {
		r := antreaRule(a, nil, PolicyPort{Protocol: TCP, Port: PortRef{Number: port}})
		r.Name = name
		r.AppliedTo = []AppliedTo{{Pods: &Selector{}}}
		return r
	}
	allow, drop, reject := rule("a", ActionAllow, 1), rule("b", ActionDrop, 2), rule("c", ActionReject, 3)
	nameless, other := rule("", ActionDrop, 4), rule("", ActionDrop, 5)
	for _, s := range []struct {
		name          string
		before, after []PolicyRule
		want          []int // for each rule after, which one before it is; -1: none
	}{
		{"one comes before", ruleList(allow, drop), ruleList(reject, allow, drop), []int{-1, 0, 1}},
		{"the first goes", ruleList(allow, drop, reject), ruleList(drop, reject), []int{1, 2}},
		{"two change places", ruleList(allow, drop), ruleList(drop, allow), []int{1, 0}},
		{"another port", ruleList(allow, drop), ruleList(allow, rule("b", ActionDrop, 7)), []int{0, 1}},
		{"another port, another place", ruleList(allow, drop), ruleList(rule("b", ActionDrop, 7), allow), []int{1, 0}},
		{"another action", ruleList(allow), ruleList(rule("a", ActionReject, 1)), []int{0}},
		{"another action, another place", ruleList(allow, drop), ruleList(drop, rule("a", ActionReject, 1)), []int{1, -1}},
		{"another name", ruleList(allow), ruleList(rule("z", ActionAllow, 1)), []int{-1}},
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

// idsByIndex are the conjunction ids of ingress rules without parts.
func idsByIndex(rules []*RealisedRule) map[int]uint32 {
	ids := map[int]uint32{}
	for _, r := range rules {
		if r.Key.Direction == tables.Ingress {
			ids[r.Key.Index] = r.Rule.ID
		}
	}
	return ids
}

// TestSightings knows the rules and Pods that are there, and no others.
func TestSightings(t *testing.T) {
	x, _ := newRecorded(t, spareYAML+strings.Replace(guardYAML, "[Ingress]}", "[Ingress], ingress: [{ports: [{protocol: TCP, port: 80}]}]}", 1))
	if n, ok := x.r.PodAt(13); !ok || n != (Name{"default", "spare"}) {
		t.Errorf("at port 13: %v %v", n, ok)
	}
	if n, ok := x.r.PodAt(21); ok {
		t.Errorf("at port 21, of no Pod: %v", n)
	}
	rows := x.r.Policies(nil)
	if len(rows) != 1 || len(rows[0].Rules) != 1 {
		t.Fatalf("policies %+v", rows)
	}
	rule := x.r.RuleByID(2)
	if rule == nil || rule.Key.Policy != guardKey || rule.Title() != "ingress[0]" {
		t.Fatalf("rule 2 is %+v", rule)
	}
	x.change(nil, []Key{guardKey})
	if rule := x.r.RuleByID(2); rule != nil {
		t.Errorf("rule 2 is still %v", rule.Key)
	}
}
