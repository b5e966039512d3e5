package tables

import (
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// AntreaPolicyIngressRule holds the ingress rules of Antrea-native policies in
// all tiers but Baseline. It exists with AntreaPolicy. It also shows DNS replies
// to the agent, for Pods with egress rules by domain name: a clause of
// conjunction 1 names them.
//
// Reads:  ct_state; addresses, ports, TargetOFPortField and ServiceGroupIDField
// of the rules.
// Writes: TFIngressConjIDField, IngressRuleCTLabel; for denied packets
// APConjIDField and APDenyRegMark; L7NPRedirectCTMark and L7NPRuleVlanIDCTLabel.
// Next:   IngressMetric once decided. Table-miss: IngressRule.

// dnsConjunction is the conjunction id of DNS replies. Rules have other ids.
const dnsConjunction = 1

// dnsPort is the source port of DNS replies.
const dnsPort = 53

// ingressEstablished passes connections that were allowed when they began.
func (p *Pipeline) ingressEstablished(f Family) []*flow.Entry {
	if hasAntreaPolicy(p) {
		return p.established(f, policyTable{Ingress, tableAntreaPolicyIngressRule}, priorityTopAntreaPolicy)
	}
	return p.established(f, policyTable{Ingress, tableIngressRule}, priorityHigh)
}

// dnsReplies pauses a DNS reply until the agent has read it.
func (p *Pipeline) dnsReplies() []*flow.Entry {
	if !hasAntreaPolicy(p) {
		return nil
	}
	read := p.packetIn(PacketInDNS)
	read.Pause = true
	return []*flow.Entry{p.entry(forPolicies, tableAntreaPolicyIngressRule, priorityDNSIntercept,
		match(layout.Exact(flow.ConjID, dnsConjunction)),
		flow.MeterAction{ID: meterDNS}, read, p.goTo(tableIngressMetric))}
}

func (p *Pipeline) dnsReply(f Family) (all []*flow.Entry) {
	if !hasAntreaPolicy(p) {
		return nil
	}
	for _, proto := range []uint8{protoTCP, protoUDP} {
		all = append(all, p.entry(forPolicies, tableAntreaPolicyIngressRule, priorityDNSIntercept,
			match(f.proto(proto), tracked(layout.CtRpl, 0), layout.Exact(srcPortField(proto), dnsPort)),
			flow.Conjunction{ID: dnsConjunction, Clause: 1, N: 2}))
	}
	return all
}
