package policy

import (
	"slices"

	"github.com/antrail/antrail/control/cluster"
)

// The Pods and Services that the policies of this Node apply to.

// AppliesToPod reports whether a policy applies to a Pod of this Node.
func (p *Policies) AppliesToPod(policy cluster.Key, pod cluster.Name) bool {
	plan := p.plans[policy]
	if plan == nil {
		return false
	}
	for _, s := range plan.specs {
		for _, set := range s.local {
			if _, is := set.members[cluster.Key{Kind: cluster.KindPod, Namespace: pod.Namespace, Name: pod.Name}]; is {
				return true
			}
		}
	}
	return false
}

// AppliesTo reports whether a policy applies to connected Pods of this Node, to a Service, or
// to any of more Pods.
func (p *Policies) AppliesTo(k cluster.Key, more []*cluster.Pod) bool {
	plan := p.plans[k]
	if plan == nil {
		return false
	}
	for _, s := range plan.specs {
		if len(s.services) > 0 || slices.ContainsFunc(s.local, func(set *podSet) bool { return len(set.members) > 0 }) {
			return true
		}
		for _, c := range s.applied {
			for _, pod := range more {
				if c.matches(p.cluster, pod) {
					return true
				}
			}
		}
	}
	return false
}

// CountSets counts the sets of peers, and the sets of this Node's Pods, that rules use.
func (p *Policies) CountSets() (peers, subjects int) {
	for _, u := range p.shared.byKey {
		if u.of == peersOfRules {
			peers++
		}
	}
	for _, set := range p.local.sets {
		if len(set.members) > 0 {
			subjects++
		}
	}
	return peers, subjects
}
