package manifest

import (
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/antrail/antrail/control/cluster"
)

// NetworkPolicies of networking.k8s.io/v1, and the ports that they share with Antrea's.

func decodeNetworkPolicy(c *check, in *networkingv1.NetworkPolicy) cluster.Object {
	spec := &in.Spec
	p := &cluster.NetworkPolicy{
		Meta: c.meta,
		Pods: unless(c.selector(specAt.Child("podSelector"), &spec.PodSelector), cluster.Selector{}),
	}
	decodePolicyTypes(c, p, spec)
	for i, r := range spec.Ingress {
		p.IngressRules = append(p.IngressRules,
			decodeNetworkPolicyRule(c, specAt.Child("ingress").Index(i), "from", r.From, r.Ports))
	}
	for i, r := range spec.Egress {
		p.EgressRules = append(p.EgressRules,
			decodeNetworkPolicyRule(c, specAt.Child("egress").Index(i), "to", r.To, r.Ports))
	}
	return p
}

// decodePolicyTypes applies the API's defaults: Ingress always, Egress if there are egress rules.
func decodePolicyTypes(c *check, p *cluster.NetworkPolicy, spec *networkingv1.NetworkPolicySpec) {
	if len(spec.PolicyTypes) == 0 {
		p.Ingress, p.Egress = true, len(spec.Egress) > 0
		return
	}
	for i, t := range spec.PolicyTypes {
		switch oneOf(c, specAt.Child("policyTypes").Index(i), t,
			networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress) {
		case networkingv1.PolicyTypeIngress:
			p.Ingress = true
		case networkingv1.PolicyTypeEgress:
			p.Egress = true
		}
	}
}

func decodeNetworkPolicyRule(c *check, at *field.Path, side string,
	peers []networkingv1.NetworkPolicyPeer, ports []networkingv1.NetworkPolicyPort) cluster.NetworkPolicyRule {
	var r cluster.NetworkPolicyRule
	for i := range peers {
		r.Peers = append(r.Peers, decodeNetworkPolicyPeer(c, at.Child(side).Index(i), &peers[i]))
	}
	for i, p := range ports {
		r.Ports = append(r.Ports, decodePolicyPort(c, at.Child("ports").Index(i),
			portManifest{Protocol: unless(p.Protocol, ""), Port: p.Port, EndPort: p.EndPort}))
	}
	return r
}

func decodeNetworkPolicyPeer(c *check, at *field.Path, in *networkingv1.NetworkPolicyPeer) cluster.NetworkPolicyPeer {
	p := cluster.NetworkPolicyPeer{
		Pods:       c.selector(at.Child("podSelector"), in.PodSelector),
		Namespaces: c.selector(at.Child("namespaceSelector"), in.NamespaceSelector),
	}
	switch selects := p.Pods != nil || p.Namespaces != nil; {
	case in.IPBlock != nil && selects:
		c.forbidden(at, "may not specify both ipBlock and another peer")
	case in.IPBlock != nil:
		b := c.block(at.Child("ipBlock"), in.IPBlock.CIDR, in.IPBlock.Except)
		p.IPBlock = &b
	case !selects:
		c.required(at, "must specify a peer")
	}
	return p
}

// decodePolicyPort reads a port of any kind of policy rule.
func decodePolicyPort(c *check, at *field.Path, in portManifest) cluster.PolicyPort {
	p := cluster.PolicyPort{Protocol: c.protocol(at.Child("protocol"), in.Protocol)}
	if in.Port != nil {
		p.Port = c.portRef(at.Child("port"), *in.Port)
	}
	if in.EndPort != nil {
		if in.Port == nil || in.Port.Type != intstr.Int {
			c.forbidden(at.Child("endPort"), "may only be set with a port number")
		}
		p.EndPort = c.rangeEnd(at.Child("endPort"), p.Port.Number, in.EndPort)
	}
	p.SourcePort = c.optionalPort(at.Child("sourcePort"), in.SourcePort)
	if in.SourceEndPort != nil {
		if in.SourcePort == nil {
			c.forbidden(at.Child("sourceEndPort"), "may only be set with a sourcePort")
		}
		p.SourceEndPort = c.rangeEnd(at.Child("sourceEndPort"), p.SourcePort, in.SourceEndPort)
	}
	return p
}

// rangeEnd checks the last port of a range.
func (c *check) rangeEnd(at *field.Path, first uint16, last *int32) uint16 {
	end := c.optionalPort(at, last)
	if end != 0 && end < first {
		c.invalid(at, *last, "must be greater than or equal to %d, where the range begins", first)
	}
	return end
}
