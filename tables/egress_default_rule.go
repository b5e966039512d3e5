package tables

import "github.com/antrail/antrail/flow"

// EgressDefaultRule drops what Pods send that K8s NetworkPolicies isolate and
// no rule allows. Rules of the Baseline tier stand below, for other Pods.
//
// Reads:  the source address; addresses and ports of the rules.
// Writes: as AntreaPolicyEgressRule, for rules.
// Next:   EgressMetric, which is also the table-miss.

func (p *Pipeline) egressDefaultDrop(pod Pod, actions []flow.Action) (all []*flow.Entry) {
	for _, a := range p.ours(pod.IPs) {
		all = append(all, p.entry(forPolicies, tableEgressDefaultRule, priorityNormal, match(src(a)), actions...))
	}
	return all
}
