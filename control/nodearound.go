package control

import (
	"net/netip"
	"slices"

	"github.com/antrail/antrail/control/cluster"
)

// The Nodes of the cluster with their Pods, and single objects.

// NodeRow is a Node with its Pods.
type NodeRow struct {
	Name      string         `json:"name"`
	Here      bool           `json:"here,omitempty"` // this Node
	Addresses []netip.Addr   `json:"addresses"`
	PodCIDRs  []netip.Prefix `json:"podCIDRs"`
	Pods      []NodePod      `json:"pods"`
}

// NodePod is a Pod of any Node, except terminated Pods and Pods in their Node's network.
type NodePod struct {
	Name string       `json:"name"` // namespace/name
	IPs  []netip.Addr `json:"ips"`
}

// Nodes returns the Nodes of the cluster by name, each with its Pods by name.
func (r *Reconciler) Nodes() []NodeRow {
	r.mu.Lock()
	v := r.view
	r.mu.Unlock()
	rows := []NodeRow{}
	if v == nil {
		return rows
	}
	pods := map[string][]NodePod{}
	for _, k := range sortedKeys(v.Pods) {
		if p := v.Pods[k]; runsOn(p, p.NodeName) {
			pods[p.NodeName] = append(pods[p.NodeName], NodePod{k.Namespace + "/" + k.Name, slices.Clone(p.IPs)})
		}
	}
	for _, k := range sortedKeys(v.Cluster.Nodes) {
		n := v.Cluster.Nodes[k]
		rows = append(rows, NodeRow{k.Name, k.Name == v.node, n.Addresses, n.PodCIDRs, append([]NodePod{}, pods[k.Name]...)})
	}
	return rows
}

// Object returns an object of the snapshot in use, or nil.
func (r *Reconciler) Object(k cluster.Key) cluster.Object {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.view == nil {
		return nil
	}
	return r.view.Object(k)
}
