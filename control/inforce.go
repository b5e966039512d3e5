package control

import (
	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/ledger"
	"github.com/antrail/antrail/control/store"
)

// InForce returns nil if the switch has the entries of the Pod behind a port, and those of all
// policies that apply to the Pod. Otherwise it returns a NotInForce. A Pod's entries are never
// installed before its policies (phaseOf).
func (r *Reconciler) InForce(port cluster.SwitchPort) error {
	k := cluster.Key{Kind: cluster.KindPod, Namespace: port.Pod.Namespace, Name: port.Pod.Name}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.view == nil:
		return NotInForce("the Node's objects are not known yet")
	case r.view.here[k] == nil:
		return NotInForce("no Pod of that name is known on this Node yet")
	case r.view.ports[port.Pod] != port:
		return NotInForce("the known Pod has another port")
	}
	if s, _ := r.status(k); s.State != ledger.Installed {
		return NotInForce(s.Reason)
	}
	for part := range r.waiting {
		if part.Object == k {
			return NotInForce("its entries are not in the switch yet")
		}
	}
	return nil
}

// NotInForce is the reason why a Pod's port stays closed.
type NotInForce string

// Error is the reason.
func (n NotInForce) Error() string { return string(n) }

// ShowRefusedEdits adds the refused edits that edits returns to each Status. Call it before any
// other method. edits must take no lock.
func (r *Reconciler) ShowRefusedEdits(edits func() store.RefusedEdits) { r.edits = edits }

// RefusedEdits returns those of all objects, also of kinds without a Status.
func (r *Reconciler) RefusedEdits() store.RefusedEdits {
	if r.edits == nil {
		return nil
	}
	return r.edits()
}

// AppliesTo reports whether a policy applies to a Pod of this Node.
func (r *Reconciler) AppliesTo(policy cluster.Key, pod cluster.Name) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.policies.policies != nil && r.policies.policies.AppliesToPod(policy, pod)
}
