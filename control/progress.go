package control

import (
	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/ledger"
	"github.com/antrail/antrail/control/policy"
)

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
	Policy *cluster.AntreaPolicy
	// State is Installed when all entries of that state are active.
	State  ledger.State
	Reason string
}

// Progress is how far the policies of this Node have come; false while that is not
// known: no snapshot was seen yet, or what is in the switch is a process's before.
func (r *Reconciler) Progress() (p Progress, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.view == nil || r.ledger.Inherited() || r.policies.policies == nil {
		return p, false
	}
	all := r.policies.policies
	connected := r.view.connected()
	p.Pods = len(connected)
	p.AddressGroups, p.AppliedToGroups = all.CountSets()
	waits := map[cluster.Key]bool{}
	for part := range r.waiting {
		waits[part.Object] = true
	}
	alone := r.view.unconnected(connected)
	for k := range r.view.NetworkPolicies {
		if all.AppliesTo(k, alone) {
			p.NetworkPolicies++
		}
	}
	for _, k := range sortedKeys(r.view.AntreaPolicies) {
		if !all.AppliesTo(k, alone) {
			continue
		}
		s, _ := r.status(k)
		if s.State == ledger.Installed && waits[k] {
			s.State = ledger.Pending
		}
		p.NetworkPolicies++
		p.Policies = append(p.Policies, PolicyProgress{r.view.AntreaPolicies[k], s.State, s.Reason})
	}
	return p, true
}

// unconnected are the Pods of this Node that have no port or no address yet.
func (v *view) unconnected(connected []*cluster.Pod) (all []*cluster.Pod) {
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

// Spans makes Spans for policies as this Node's pipeline takes them; nil when it takes
// none.
func (r *Reconciler) Spans() *policy.Spans {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.view == nil || !r.view.config.Features.AntreaPolicy {
		return nil
	}
	return policy.NewSpans(r.view.config.Features)
}
