package control

import (
	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/ledger"
	"github.com/antrail/antrail/control/policy"
)

// Progress is a Node's report about its policies.
type Progress struct {
	// Policies are the Antrea-native policies that apply to Pods of this Node, by key.
	Policies []PolicyProgress
	// NetworkPolicies counts the policies of both kinds that apply to Pods of this Node.
	// AddressGroups counts the sets of peers that their rules share, AppliedToGroups the sets
	// of Pods of this Node.
	NetworkPolicies, AddressGroups, AppliedToGroups int
	// Pods counts the connected Pods of this Node.
	Pods int
}

// PolicyProgress is the state of a policy on this Node.
type PolicyProgress struct {
	// Policy is the state of the policy that the switch was brought to, with its generation.
	Policy *cluster.AntreaPolicy
	// State is Installed when all entries of that state are active.
	State  ledger.State
	Reason string
}

// Progress is the state of this Node's policies. It returns false while that is unknown: before the
// first snapshot, or while the switch still has the entries of an earlier process.
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

// unconnected returns the Pods of this Node without a port or an address.
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

// Spans makes Spans for this Node's pipeline; nil if that has no Antrea-native policies.
func (r *Reconciler) Spans() *policy.Spans {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.view == nil || !r.view.config.Features.AntreaPolicy {
		return nil
	}
	return policy.NewSpans(r.view.config.Features)
}
