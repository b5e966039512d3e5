package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/tables"
)

// Ports and protocols of rules as matches. The number of a named port depends on the destination
// Pod. For ingress that is the Pod that the rule applies to, for egress the peer.

// fixedMatches returns a rule's protocols and its ports given by number. ok is false if the rule
// has ports or protocols, but only named ports.
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

// hasNamedPorts reports whether a port depends on the destination.
func (s *policySpec) hasNamedPorts() bool {
	return slices.ContainsFunc(s.ports, func(p cluster.PolicyPort) bool { return p.Port.Name != "" })
}

// namedMatches returns the matches of the named ports at one Pod. The key is equal for Pods with
// equal numbers, and empty for a Pod without these ports.
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

// portMatch matches a port or a range of ports of a protocol; number 0 is any port.
func portMatch(p cluster.PolicyPort, number uint16) tables.L4Match {
	return tables.L4Match{
		Proto: uint8(p.Protocol), Port: number, EndPort: p.EndPort,
		SrcPort: p.SourcePort, SrcEnd: p.SourceEndPort,
	}
}

// IP protocol numbers of the protocols without ports.
const (
	protoICMP   = 1
	protoIGMP   = 2
	protoICMPv6 = 58
)

// igmpQuery is the IGMP type of queries.
const igmpQuery = 0x11

// protocolMatches returns the matches of IGMP, or those of ICMP for each family.
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
