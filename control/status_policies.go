package control

import (
	"maps"
	"slices"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/policy"
	"github.com/antrail/antrail/flow"
)

// PolicyRow is a policy as `get policies` shows it.
type PolicyRow struct {
	Status
	Tier     string           `json:"tier,omitempty"`
	Priority float64          `json:"priority,omitempty"`
	Rules    []policy.RuleRow `json:"rules"` // in this Node's tables
	// RuleCounters is the sum over the rules.
	policy.RuleCounters
}

// Policies returns all policies by key, each with its rules in order.
func (r *Reconciler) Policies(count policy.Counter) []PolicyRow {
	r.mu.Lock()
	defer r.mu.Unlock()
	rows := []PolicyRow{}
	if r.view == nil {
		return rows
	}
	rules := r.rulesOf(count)
	for _, k := range sortedKeys(r.view.NetworkPolicies) {
		rows = append(rows, r.policyRow(k, rules[k]))
	}
	for _, k := range sortedKeys(r.view.AntreaPolicies) {
		row := r.policyRow(k, rules[k])
		row.Tier, row.Priority = r.view.AntreaPolicies[k].Tier, r.view.AntreaPolicies[k].Priority
		rows = append(rows, row)
	}
	return rows
}

func (r *Reconciler) policyRow(k cluster.Key, rules []policy.RuleRow) PolicyRow {
	row := PolicyRow{Status: r.shown(k), Rules: []policy.RuleRow{}}
	for _, rule := range rules {
		row.Rules = append(row.Rules, rule)
		row.RuleCounters = row.Plus(rule.RuleCounters)
	}
	return row
}

// rulesOf returns the rules of all policies with their counters. It leaves out isolations without rules: their own
// counters stay 0, because IngressDefaultRule and EgressDefaultRule count what they drop.
func (r *Reconciler) rulesOf(count policy.Counter) map[cluster.Key][]policy.RuleRow {
	rules := slices.DeleteFunc(r.policies.realised(), (*policy.RealisedRule).Isolates)
	counters := map[uint32]policy.RuleCounters{}
	if count != nil {
		counters = policy.CountRules(r.metricEntries(rules), r.view.names, count)
	}
	if p := r.policies.policies; p != nil {
		maps.Copy(counters, p.Reports())
	}
	all := map[cluster.Key][]policy.RuleRow{}
	for _, row := range policy.RuleRows(rules, counters, r.waits) {
		all[row.Policy] = append(all[row.Policy], row)
	}
	return all
}

// waits reports whether the switch lacks a rule in its current form.
func (r *Reconciler) waits(rule *policy.RealisedRule) bool {
	_, waits := r.waiting[rulePart(rule)]
	return waits
}

// metricEntries returns the installed entries that count some rules.
func (r *Reconciler) metricEntries(rules []*policy.RealisedRule) (all []*flow.Entry) {
	for _, rule := range rules {
		d := r.ledger.Desired(rulePart(rule))
		if d == nil {
			continue
		}
		for _, w := range d.Entries {
			if id, _ := policy.CountedBy(w.Entry, r.view.names.Table(w.Entry.Table)); id == 0 {
				continue
			}
			if row := r.ledger.Installed(w.Entry); row != nil {
				all = append(all, row.Entry())
			}
		}
	}
	return all
}
