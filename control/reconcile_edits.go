package control

import (
	"github.com/antrail/antrail/control/cluster"

	"github.com/antrail/antrail/control/store"
)

// ShowRefusedEdits has each Status tell of the refused edits that edits returns. It is
// called before any other method, and edits takes no lock.
func (r *Reconciler) ShowRefusedEdits(edits func() store.RefusedEdits) { r.edits = edits }

// RefusedEdits are those of all objects, also of kinds that have no Status.
func (r *Reconciler) RefusedEdits() store.RefusedEdits {
	if r.edits == nil {
		return nil
	}
	return r.edits()
}

// AppliesTo says whether a policy applies to a Pod of this Node.
func (r *Reconciler) AppliesTo(policy cluster.Key, pod cluster.Name) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.policies.policies != nil && r.policies.policies.AppliesToPod(policy, pod)
}
