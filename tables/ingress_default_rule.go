package tables

import "github.com/antrail/antrail/flow"

// IngressDefaultRule drops what is for Pods that K8s NetworkPolicies isolate
// and no rule allows. Rules of the Baseline tier stand below, for other Pods.
//
// Reads:  TargetOFPortField; addresses and ports of the rules.
// Writes: as AntreaPolicyIngressRule, for rules.
// Next:   IngressMetric, which is also the table-miss.

func (p *Pipeline) ingressDefaultDrop(pod Pod, actions []flow.Action) []*flow.Entry {
	return []*flow.Entry{p.entry(forPolicies, tableIngressDefaultRule, priorityNormal,
		match(TargetOFPortField.is(uint64(pod.Port.No))), actions...)}
}
