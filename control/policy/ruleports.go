package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/tables"
)

// Ports and protocols of rules as matches. A named port is a number that a Pod
// decides: the destination, so for ingress the Pod that the rule applies to,
// for egress the peer.

// fixedMatches are the ports by number and the protocols of a rule. ok is
// false when the rule names ports or protocols and none of them is such.
func (s *policySpec) fixedMatches(families []tables.Family) (all []tables.L4Match, ok bool) {
	for _, port := range s.ports {
		if port.Port.Name == "" {
			all = append(all, portMatch(port, port.Port.Number))
		}
	}
	for _, p := range s.proto {
		all = append(all, protocolMatches(p, families)...)
	}
	return all, len(all) > 0 || len(s.ports)+len(s.proto) == 0
}

// hasNamedPorts reports whether some port depends on the destination.
func (s *policySpec) hasNamedPorts() bool {
	return slices.ContainsFunc(s.ports, func(p cluster.PolicyPort) bool { return p.Port.Name != "" })
}

// namedMatches are the named ports as one Pod has them, and a text that is the
// same for Pods that have them alike; empty for one that has none of them.
func (s *policySpec) namedMatches(p *cluster.Pod) (key string, all []tables.L4Match) {
	var words []string
	for _, port := range s.ports {
		if port.Port.Name == "" {
			continue
		}
		if number, has := p.Port(port.Port.Name, port.Protocol); has {
			words = append(words, fmt.Sprintf("%s/%s=%d", port.Port.Name, port.Protocol, number))
			all = append(all, portMatch(port, number))
		}
	}
	return strings.Join(words, ","), all
}

// portMatch is a port or a range of a protocol; number 0 is any port.
func portMatch(p cluster.PolicyPort, number uint16) tables.L4Match {
	return tables.L4Match{
		Proto: uint8(p.Protocol), Port: number, EndPort: p.EndPort,
		SrcPort: p.SourcePort, SrcEnd: p.SourceEndPort,
	}
}

// IP protocol numbers of the protocols that have no ports.
const (
	protoICMP   = 1
	protoIGMP   = 2
	protoICMPv6 = 58
)

// igmpQuery is the type of queries of IGMP.
const igmpQuery = 0x11

// protocolMatches are the matches of ICMP, one for each family, or IGMP.
func protocolMatches(p cluster.PolicyProtocol, families []tables.Family) (all []tables.L4Match) {
	if p.IGMP != nil {
		return []tables.L4Match{{Proto: protoIGMP, GroupAddress: p.IGMP.Group, IGMPType: p.IGMP.Type}}
	}
	for _, f := range families {
		m := tables.L4Match{Proto: protoICMP, ICMPType: p.ICMP.Type, ICMPCode: p.ICMP.Code}
		if f == tables.IPv6 {
			m.Proto = protoICMPv6
		}
		all = append(all, m)
	}
	return all
}
