package policy

import (
	"net/netip"
	"slices"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/tables"
)

// Rules about membership reports. A report of IGMP version 3 may have many groups, and a flow
// entry sees none of them. So reports go to the agent, which asks this package about each group.
// A Pod that may not join a group gets no copy of its packets.

// reportRules has the rules about reports, and their counters by conjunction id.
type reportRules struct {
	specs   map[*policySpec]bool
	decided map[uint32]RuleCounters
}

// MayReport reports whether a Pod of this Node may join a group that it reported in an IGMP
// message of a type. Without a rule it may.
func (p *Policies) MayReport(pod cluster.Key, group netip.Addr, igmpType uint8) bool {
	r := p.reportRule(pod, group, igmpType)
	return r == nil || r.Rule.Action == tables.Allow
}

// CountReport counts a report of some bytes for the rule that decides on it.
func (p *Policies) CountReport(pod cluster.Key, group netip.Addr, igmpType uint8, bytes int) {
	if r := p.reportRule(pod, group, igmpType); r != nil {
		p.reports.decided[r.Rule.ID] = p.reports.decided[r.Rule.ID].Plus(RuleCounters{Packets: 1, Bytes: uint64(bytes)})
	}
}

// Reports returns the counters of the rules about reports, by conjunction id. The caller must
// not write the map.
func (p *Policies) Reports() map[uint32]RuleCounters { return p.reports.decided }

// reportRule is the rule that decides on a report, or nil. If two rules have one rank, the one
// that drops decides.
func (p *Policies) reportRule(pod cluster.Key, group netip.Addr, igmpType uint8) (first *RealisedRule) {
	for s := range p.reports.specs {
		if !slices.ContainsFunc(s.local, func(set *podSet) bool { _, in := set.members[pod]; return in }) {
			continue
		}
		for _, r := range s.parts {
			about := func(m tables.L4Match) bool {
				return (!m.GroupAddress.IsValid() || m.GroupAddress == group) && (m.IGMPType == nil || *m.IGMPType == igmpType)
			}
			if slices.ContainsFunc(r.Rule.Services, about) && (first == nil || r.decidesBefore(first)) {
				first = r
			}
		}
	}
	return first
}

func (r *RealisedRule) decidesBefore(o *RealisedRule) bool {
	if r.Rule.Priority != o.Rule.Priority {
		return r.Rule.Priority > o.Rule.Priority
	}
	return r.Rule.Action == tables.Drop && o.Rule.Action != tables.Drop
}
