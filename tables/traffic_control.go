package tables

import "github.com/antrail/antrail/flow"

// TrafficControl chooses which packets are mirrored or redirected, and where to. It exists with
// TrafficControl or L7NetworkPolicy.
//
// It only writes the target's port. Output sends, after the policies, so that an engine sees
// allowed packets only. Packets from an engine skip these tables, or they would be redirected
// forever.
//
// Reads:  in_port and TargetOFPortField, PktSourceField.
// Writes: TrafficControlTargetOFPortField, TrafficControlActionField.
// Next:   the ingress policies, which is also the table-miss; output for packets from an engine.

// trafficReturned belongs to TrafficControl, and in v1.15 to L7NetworkPolicy too. Antrea installs
// the entry for both, for L7NetworkPolicy last, so it has that cookie.
func (p *Pipeline) trafficReturned() []*flow.Entry {
	if !hasTrafficControl(p) {
		return nil
	}
	owner := forPods
	if p.c.Features.L7Policy && !isV2(p) {
		owner = forPolicies
	}
	return []*flow.Entry{p.entry(owner, tableTrafficControl, priorityHigh,
		match(FromTCReturnRegMark.Is(), OutputToOFPortRegMark.Is()), p.goStage(stageOutput))}
}

// trafficReturnedL7 sends on packets from the engine of policies, in v2.
func (p *Pipeline) trafficReturnedL7() *flow.Entry {
	return p.entry(forPolicies, tableTrafficControl, priorityHigh, match(FromL7NPReturnRegMark.Is()), p.goStage(stageOutput))
}

// controlTraffic marks packets from a Pod (egress) or to it (ingress).
func (p *Pipeline) controlTraffic(tc TrafficControl, pod uint32) (all []*flow.Entry) {
	action := TrafficControlMirrorRegMark
	if tc.Redirect {
		action = TrafficControlRedirectRegMark
	}
	add := func(t term) {
		all = append(all, p.entry(forPods, tableTrafficControl, priorityNormal, match(t),
			TrafficControlTargetOFPortField.Set(uint64(tc.Target.No)), action.Set(), p.goNext(tableTrafficControl)))
	}
	if tc.Egress {
		add(inPort(pod))
	}
	if tc.Ingress {
		add(TargetOFPortField.Is(uint64(pod)))
	}
	return all
}
