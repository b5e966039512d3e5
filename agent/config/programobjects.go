package config

import (
	"fmt"
	"net/netip"

	"github.com/antrail/antrail/tables/layout"
)

// What a program has in the place of a cluster's objects. All addresses are of IPv4, as programs are.

// ProgramService is an address of a Service with the endpoint that it leads to.
type ProgramService struct {
	// Protocol is one of tcp and udp.
	Protocol string `json:"protocol"`
	// Address is the Service's address and port.
	Address netip.AddrPort `json:"address"`
	// Endpoint is the address and port of the pod that answers.
	Endpoint netip.AddrPort `json:"endpoint"`
}

// ProgramPolicy is what one pod may receive and send. Without rules of a direction it may do all.
type ProgramPolicy struct {
	// Pod is the pod's address.
	Pod netip.Addr `json:"pod"`
	// Ingress has what the pod may receive; an empty list is nothing. The Node reaches its pods.
	Ingress *[]ProgramRule `json:"ingress,omitempty"`
	// Egress has what the pod may send; an empty list is nothing.
	Egress *[]ProgramRule `json:"egress,omitempty"`
}

// ProgramRule allows new connections.
type ProgramRule struct {
	// Protocol is one of tcp and udp, or all.
	Protocol string `json:"protocol,omitempty"`
	// Port is the destination port, or all. Only with protocol.
	Port uint16 `json:"port,omitempty" unit:"port number"`
	// Other is the range of the other end, or all.
	Other netip.Prefix `json:"other,omitzero"`
}

// protocols are those of Services and rules, with their IP protocol numbers.
var protocols = map[string]uint8{"tcp": 6, "udp": 17}

// rulesOf are rules as a program has them; nil for none.
func rulesOf(rules *[]ProgramRule) *[]layout.Rule {
	if rules == nil {
		return nil
	}
	all := []layout.Rule{}
	for _, r := range *rules {
		all = append(all, layout.Rule{Proto: protocols[r.Protocol], Port: r.Port, Other: r.Other.Masked()})
	}
	return &all
}

// checkServices finds Services that no entry can translate, and an address that two of them claim.
func (f *faults) checkServices(all []ProgramService) {
	taken := map[string]string{}
	for i, s := range all {
		who := fmt.Sprintf("services[%d]", i)
		f.check(protocols[s.Protocol] != 0, "%s.protocol: %q is neither tcp nor udp", who, s.Protocol)
		f.check(s.Address.Addr().Is4() && s.Address.Port() != 0, "%s.address: %v is no IPv4 address with a port", who, s.Address)
		f.check(s.Endpoint.Addr().Is4() && s.Endpoint.Port() != 0, "%s.endpoint: %v is no IPv4 address with a port", who, s.Endpoint)
		claim(f, taken, s.Protocol+" "+s.Address.String(), who, "address")
	}
}

// checkPolicies finds rules that no entry can match, and a pod with two policies.
func (f *faults) checkPolicies(all []ProgramPolicy) {
	taken := map[netip.Addr]string{}
	for i, p := range all {
		who := fmt.Sprintf("policies[%d]", i)
		f.check(p.Pod.Is4(), "%s.pod: %v is no IPv4 address", who, p.Pod)
		claim(f, taken, p.Pod, who, "pod")
		f.checkRules(who+".ingress", p.Ingress)
		f.checkRules(who+".egress", p.Egress)
	}
}

func (f *faults) checkRules(who string, rules *[]ProgramRule) {
	if rules == nil {
		return
	}
	for i, r := range *rules {
		f.check(r.Protocol == "" || protocols[r.Protocol] != 0, "%s[%d].protocol: %q is neither tcp nor udp", who, i, r.Protocol)
		f.check(r.Port == 0 || r.Protocol != "", "%s[%d].port: only with protocol", who, i)
		f.check(r.Other == netip.Prefix{} || r.Other.IsValid() && r.Other.Addr().Is4(), "%s[%d].other: %v is no range of IPv4", who, i, r.Other)
	}
}
