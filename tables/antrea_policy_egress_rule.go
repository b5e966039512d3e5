package tables

import "github.com/antrail/antrail/flow"

// AntreaPolicyEgressRule holds the egress rules of Antrea-native policies in
// all tiers but Baseline. It exists with AntreaPolicy. The rules are made in
// policy_rule.go, for all six tables that hold rules.
//
// What is established, or related to what is, passes by entries above all
// rules: policies are asked about the first packet of a connection.
//
// Reads:  ct_state; addresses, ports and ServiceGroupIDField of the rules.
// Writes: TFEgressConjIDField, EgressRuleCTLabel; of denied packets
// APConjIDField and APDenyRegMark.
// Next:   EgressMetric once decided. Table-miss: EgressRule.

// egressEstablished lets connections pass that were allowed when they began.
func (p *Pipeline) egressEstablished(f Family) []*flow.Entry {
	if hasAntreaPolicy(p) {
		return p.established(f, policyTable{Egress, tableAntreaPolicyEgressRule}, priorityTopAntreaPolicy)
	}
	return p.established(f, policyTable{Egress, tableEgressRule}, priorityHigh)
}
