package tables

import "github.com/antrail/antrail/flow"

// EgressDefaultRule drops what Pods send that K8s NetworkPolicies isolate and
// no rule allows. Rules of the Baseline tier stand below, for other Pods.
//
// A policy that selects a Pod for egress isolates it, whatever else it says: one entry
// for each of the Pod's addresses, however many policies select it. What the rules
// allow has left for EgressMetric before it comes here.
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
