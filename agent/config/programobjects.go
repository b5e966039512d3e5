package config

import (
	"fmt"
	"net/netip"

	"github.com/antrail/antrail/tables/layout"
)

// A program's substitute for a cluster's objects. All addresses are IPv4, as in all programs.

// ProgramService is the address of a Service, and its endpoint.
type ProgramService struct {
	// Protocol is one of tcp and udp.
	Protocol string `json:"protocol"`
	// Address is the Service's address and port.
	Address netip.AddrPort `json:"address"`
	// Endpoint is the address and port of the pod that answers.
	Endpoint netip.AddrPort `json:"endpoint"`
}

// ProgramPolicy is what one pod may receive and send. A direction without rules allows all.
type ProgramPolicy struct {
	// Pod is the pod's address.
	Pod netip.Addr `json:"pod"`
	// Ingress has what the pod may receive; an empty list allows nothing. The Node always
	// reaches its pods.
	Ingress *[]ProgramRule `json:"ingress,omitempty"`
	// Egress has what the pod may send; an empty list allows nothing.
	Egress *[]ProgramRule `json:"egress,omitempty"`
}

// ProgramRule allows new connections.
type ProgramRule struct {
	// Protocol is one of tcp and udp; without it, all.
	Protocol string `json:"protocol,omitempty"`
	// Port is the destination port; without it, all. Only with protocol.
	Port uint16 `json:"port,omitempty" unit:"port number"`
	// Other is the range of the other end; without it, all.
	Other netip.Prefix `json:"other,omitzero"`
}

// protocols are the protocols of Services and rules, with their IP protocol numbers.
var protocols = map[string]uint8{"tcp": 6, "udp": 17}

// rulesOf converts rules to a program's; nil for nil.
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

// checkServices reports Services that no entry can translate, and addresses that two Services
// claim.
func (f *faults) checkServices(all []ProgramService) {
	taken := map[string]string{}
	for i, s := range all {
		who := fmt.Sprintf("services[%d]", i)
		f.check(protocols[s.Protocol] != 0, "%s.protocol: %q is neither tcp nor udp", who, s.Protocol)
		f.check(s.Address.Addr().Is4() && s.Address.Port() != 0, "%s.address: %v is not an IPv4 address with a port", who, s.Address)
		f.check(s.Endpoint.Addr().Is4() && s.Endpoint.Port() != 0, "%s.endpoint: %v is not an IPv4 address with a port", who, s.Endpoint)
		claim(f, taken, s.Protocol+" "+s.Address.String(), who, "address")
	}
}

// checkPolicies reports rules that no entry can match, and pods with two policies.
func (f *faults) checkPolicies(all []ProgramPolicy) {
	taken := map[netip.Addr]string{}
	for i, p := range all {
		who := fmt.Sprintf("policies[%d]", i)
		f.check(p.Pod.Is4(), "%s.pod: %v is not an IPv4 address", who, p.Pod)
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
		f.check(r.Other == netip.Prefix{} || r.Other.IsValid() && r.Other.Addr().Is4(), "%s[%d].other: %v is not an IPv4 range (CIDR)", who, i, r.Other)
	}
}
