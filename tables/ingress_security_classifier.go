package tables

import (
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// IngressSecurityClassifier takes packets past the ingress policies if these do not concern them.
// Such packets leave by gateway, tunnel or uplink, are hairpins, or are the Node's own probes of
// its Pods. The Node's rules mark the probes.
//
// On an external Node, it instead has the connections that policies do not decide on
// (EgressSecurityClassifier).
//
// Reads:  PktDestinationField, ToNodePortAddressRegMark, HairpinCTMark, pkt_mark, ct_state.
// Writes: nothing.
// Next:   IngressMetric or conntrack. Table-miss: the first table of ingress policies.

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

// ingressNodePorts: policies that apply to a Service of type NodePort also concern packets that
// leave by the gateway.
func (p *Pipeline) ingressNodePorts() []*flow.Entry {
	if !hasProxyAll(p) || !hasAntreaPolicy(p) {
		return nil
	}
	return []*flow.Entry{p.entry(forPolicies, tableIngressSecurityClassifier, priorityNormal+1,
		match(ToNodePortAddressRegMark.Is()), p.goTo(tableAntreaPolicyIngressRule))}
}
