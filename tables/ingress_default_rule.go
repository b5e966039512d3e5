package tables

import "github.com/antrail/antrail/flow"

// IngressDefaultRule drops what is for Pods that K8s NetworkPolicies isolate
// and no rule allows. Rules of the Baseline tier stand below, for other Pods.
//
// A policy that selects a Pod for ingress isolates it, whatever else it says: one entry
// for the Pod's port, however many policies select it. What the rules allow has left for
// IngressMetric before it comes here.
//
// Reads:  TargetOFPortField; addresses and ports of the rules.
// Writes: as AntreaPolicyIngressRule, for rules.
// Next:   IngressMetric, which is also the table-miss.

func (p *Pipeline) ingressDefaultDrop(pod Pod, actions []flow.Action) []*flow.Entry {
	return []*flow.Entry{p.entry(forPolicies, tableIngressDefaultRule, priorityNormal,
		match(TargetOFPortField.Is(uint64(pod.Port.No))), actions...)}
}
