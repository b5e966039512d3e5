package tables

import "github.com/antrail/antrail/flow"

// IngressDefaultRule drops packets to Pods that K8s NetworkPolicies isolate if no rule allows
// them. Rules of the Baseline tier have lower priorities, for other Pods.
//
// A policy that selects a Pod for ingress isolates it. There is one entry for the Pod's port,
// however many policies select it. Packets that a rule allows went to IngressMetric before this
// table.
//
// Reads:  TargetOFPortField; addresses and ports of the rules.
// Writes: as AntreaPolicyIngressRule, for rules.
// Next:   IngressMetric, which is also the table-miss.

func (p *Pipeline) ingressDefaultDrop(pod Pod, actions []flow.Action) []*flow.Entry {
	return []*flow.Entry{p.entry(forPolicies, tableIngressDefaultRule, priorityNormal,
		match(TargetOFPortField.Is(uint64(pod.Port.No))), actions...)}
}
