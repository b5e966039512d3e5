package tables

import "github.com/antrail/antrail/flow"

// AntreaPolicyEgressRule holds the egress rules of Antrea-native policies in all
// tiers but Baseline. It exists with AntreaPolicy. policy_rule.go makes the rules
// of all tables that hold rules.
//
// Policies decide only on the first packet of a connection. Packets of
// established and related connections pass by entries above all rules.
//
// Reads:  ct_state; addresses, ports and ServiceGroupIDField of the rules.
// Writes: TFEgressConjIDField, EgressRuleCTLabel; for denied packets
// APConjIDField and APDenyRegMark.
// Next:   EgressMetric once decided. Table-miss: EgressRule.

// egressEstablished passes connections that were allowed when they began.
func (p *Pipeline) egressEstablished(f Family) []*flow.Entry {
	if hasAntreaPolicy(p) {
		return p.established(f, policyTable{Egress, tableAntreaPolicyEgressRule}, priorityTopAntreaPolicy)
	}
	return p.established(f, policyTable{Egress, tableEgressRule}, priorityHigh)
}
