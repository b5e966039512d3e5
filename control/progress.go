package control

import "slices"

// Progress is what a Node tells the cluster of its policies.
type Progress struct {
	// Policies are the Antrea-native policies that apply to Pods of this Node, by key.
	Policies []PolicyProgress
	// NetworkPolicies counts the policies of both kinds that apply to Pods of this Node,
	// AddressGroups the sets of peers and AppliedToGroups the sets of Pods of this Node
	// that their rules share.
	NetworkPolicies, AddressGroups, AppliedToGroups int
	// Pods of this Node are connected.
	Pods int
}

// PolicyProgress is how far a policy has come on this Node.
type PolicyProgress struct {
	// Policy is the state of it that the switch was brought to, with its generation.
	Policy *AntreaPolicy
	// State is Installed when all entries of that state are active.
	State  State
	Reason string
}

// Progress is how far the policies of this Node have come; false while that is not
// known: no snapshot was seen yet, or what is in the switch is a process's before.
func (r *Reconciler) Progress() (p Progress, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.view == nil || r.ledger.inherits || r.policies.policies == nil {
		return p, false
	}
	all := r.policies.policies
	connected := r.view.connected()
	p.Pods = len(connected)
	p.AddressGroups, p.AppliedToGroups = all.counts()
	waits := map[Key]bool{}
	for part := range r.waiting {
		waits[part.Object] = true
	}
	alone := r.view.unconnected(connected)
	for k := range r.view.NetworkPolicies {
		if all.appliesTo(k, alone) {
			p.NetworkPolicies++
		}
	}
	for _, k := range sortedKeys(r.view.AntreaPolicies) {
		if !all.appliesTo(k, alone) {
			continue
		}
		s, _ := r.status(k)
		if s.State == Installed && waits[k] {
			s.State = Pending
		}
		p.NetworkPolicies++
		p.Policies = append(p.Policies, PolicyProgress{r.view.AntreaPolicies[k], s.State, s.Reason})
	}
	return p, true
}

// unconnected are the Pods of this Node that have no port or no address yet.
func (v *view) unconnected(connected []*Pod) (all []*Pod) {
	if len(connected) == len(v.here) {
		return nil
	}
	for _, p := range v.here {
		if _, lacks := v.localPod(p); lacks != "" {
			all = append(all, p)
		}
	}
	return all
}

// appliesTo says whether a policy applies to connected Pods of this Node, to a Service,
// or to any of more Pods.
func (p *Policies) appliesTo(k Key, more []*Pod) bool {
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

// counts are the sets of peers, and those of Pods of this Node, that rules use.
func (p *Policies) counts() (peers, subjects int) {
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
