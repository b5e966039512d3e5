package tables

import "github.com/antrail/antrail/flow"

// EgressDefaultRule drops packets from Pods that K8s NetworkPolicies isolate and whose packets no
// rule allows. Rules of the Baseline tier have lower priorities, for other Pods.
//
// A policy that selects a Pod for egress isolates it. There is one entry for each of the Pod's
// addresses, however many policies select it. Packets that a rule allows went to EgressMetric
// before this table.
//
// Reads:  the source address; addresses and ports of the rules.
// Writes: as AntreaPolicyEgressRule, for rules.
// Next:   EgressMetric, which is also the table-miss.

func (p *Pipeline) egressDefaultDrop(pod Pod, actions []flow.Action) (all []*flow.Entry) {
	for _, a := range p.addrsInFamilies(pod.IPs) {
		all = append(all, p.entry(forPolicies, tableEgressDefaultRule, priorityNormal, match(src(a)), actions...))
	}
	return all
}
