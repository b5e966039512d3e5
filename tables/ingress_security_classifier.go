package tables

import (
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// IngressSecurityClassifier takes the packets out that ingress policies do not
// concern. They leave by gateway, tunnel or uplink, or are hairpins, or are the
// Node's own probes of its Pods, which the Node's rules mark.
//
// On an external Node, it has what policies do not decide on instead (EgressSecurityClassifier).
//
// Reads:  PktDestinationField, ToNodePortAddressRegMark, HairpinCTMark,
// pkt_mark, ct_state.
// Writes: nothing.
// Next:   IngressMetric or conntrack. Table-miss: the first table of ingress
// policies.

func (p *Pipeline) ingressProbes(f Family) []*flow.Entry {
	return []*flow.Entry{p.entry(forPods, tableIngressSecurityClassifier, priorityHigh,
		match(f.ip(), tracked(0, layout.CtRpl), HostLocalSourceMark.Is()), p.goStage(stageConntrack))}
}

func (p *Pipeline) ingressPassing() (all []*flow.Entry) {
	for _, k := range []Mark{ToTunnelRegMark, ToGatewayRegMark, ToUplinkRegMark} {
		all = append(all, p.entry(forPolicies, tableIngressSecurityClassifier, priorityNormal,
			match(k.Is()), p.goTo(tableIngressMetric)))
	}
	return append(all, p.entry(forPolicies, tableIngressSecurityClassifier, priorityNormal,
		match(HairpinCTMark.Is()), p.goStage(stageConntrack)))
}

// ingressNodePorts: policies that apply to a Service of type NodePort concern
// what leaves by the gateway too.
func (p *Pipeline) ingressNodePorts() []*flow.Entry {
	if !hasProxyAll(p) || !hasAntreaPolicy(p) {
		return nil
	}
	return []*flow.Entry{p.entry(forPolicies, tableIngressSecurityClassifier, priorityNormal+1,
		match(ToNodePortAddressRegMark.Is()), p.goTo(tableAntreaPolicyIngressRule))}
}
