package kube

import (
	"cmp"

	"github.com/antrail/antrail/control/cluster"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The resources to watch. Pods have two watches, so that those of the Node do not wait behind all
// others. The first has the Node's Pods of any phase. The second has, for the policies that name
// them, other Nodes' Pods that may send.

// resource is one resource to watch.
type resource struct {
	kind     cluster.Kind
	gvk      schema.GroupVersionKind
	plural   string
	selector string         // of fields
	example  runtime.Object // of built-in types; nil: JSON
	where    string         // distinguishes two watches of one resource
	// unenforced refuses each object by its kind (unenforced.go).
	unenforced bool
}

func (r *resource) gvr() schema.GroupVersionResource {
	return r.gvk.GroupVersion().WithResource(r.plural)
}

// builtin returns the resources that every API server has.
func builtin(node string) []resource {
	core, discovery, networking := corev1.SchemeGroupVersion, discoveryv1.SchemeGroupVersion, networkingv1.SchemeGroupVersion
	return []resource{
		{kind: cluster.KindNode, gvk: core.WithKind("Node"), plural: "nodes", example: &corev1.Node{}},
		{kind: cluster.KindNamespace, gvk: core.WithKind("Namespace"), plural: "namespaces", example: &corev1.Namespace{}},
		{kind: cluster.KindService, gvk: core.WithKind("Service"), plural: "services", example: &corev1.Service{}},
		{kind: cluster.KindEndpointSlice, gvk: discovery.WithKind("EndpointSlice"), plural: "endpointslices", example: &discoveryv1.EndpointSlice{}},
		{kind: cluster.KindNetworkPolicy, gvk: networking.WithKind("NetworkPolicy"), plural: "networkpolicies", example: &networkingv1.NetworkPolicy{}},
		{kind: cluster.KindPod, gvk: core.WithKind("Pod"), plural: "pods", example: &corev1.Pod{}, where: "here",
			selector: "spec.nodeName=" + node},
		{kind: cluster.KindPod, gvk: core.WithKind("Pod"), plural: "pods", example: &corev1.Pod{}, where: "elsewhere",
			selector: "spec.nodeName!=" + node + ",spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"},
	}
}

// antreaGroup is the API group of Antrea's kinds.
const antreaGroup = "crd.antrea.io"

// antreaKinds are Antrea's kinds with the readable versions, the best first.
var antreaKinds = []struct {
	kind     cluster.Kind
	name     string
	plural   string
	versions []string
}{
	{cluster.KindTier, "Tier", "tiers", []string{"v1beta1", "v1alpha1"}},
	{cluster.KindClusterNetworkPolicy, "ClusterNetworkPolicy", "clusternetworkpolicies", []string{"v1beta1", "v1alpha1"}},
	{cluster.KindAntreaNetworkPolicy, "NetworkPolicy", "networkpolicies", []string{"v1beta1", "v1alpha1"}},
	{cluster.KindClusterGroup, "ClusterGroup", "clustergroups", []string{"v1beta1", "v1alpha3"}},
	{cluster.KindGroup, "Group", "groups", []string{"v1beta1", "v1alpha3"}},
	{cluster.KindExternalEntity, "ExternalEntity", "externalentities", []string{"v1alpha2"}},
	{cluster.KindExternalEntity, externalNode, "externalnodes", []string{"v1alpha1"}},
	{cluster.KindEgress, "Egress", "egresses", []string{"v1beta1", "v1alpha2"}},
	{cluster.KindExternalIPPool, "ExternalIPPool", "externalippools", []string{"v1beta1", "v1alpha2"}},
	{cluster.KindTrafficControl, "TrafficControl", "trafficcontrols", []string{"v1alpha2"}},
	{cluster.KindTraceflow, "Traceflow", "traceflows", []string{"v1beta1", "v1alpha1"}},
}

// externalNode is read as its ExternalEntity. Antrea's controller makes that entity too, under the
// same name and with the same labels and addresses.
const externalNode = "ExternalNode"

// served has the resources of a group, as version/plural.
type served map[string]bool

// choose returns the kinds of Antrea that can be watched, each in the best version, and those that
// are absent.
func (has served) choose() (there []resource, absent map[cluster.Kind]bool) {
	absent = map[cluster.Kind]bool{}
	for _, k := range antreaKinds {
		kind := k.kind
		if k.name == externalNode {
			kind = externalNode
		}
		absent[kind] = true
		for _, v := range k.versions {
			if has[v+"/"+k.plural] {
				gvk := schema.GroupVersionKind{Group: antreaGroup, Version: v, Kind: k.name}
				there = append(there, resource{kind: k.kind, gvk: gvk, plural: k.plural})
				delete(absent, kind)
				break
			}
		}
	}
	return there, absent
}

// name is the resource's name for RBAC and kubectl, and the part of it that is watched.
func (r *resource) name() string {
	name := r.plural
	if r.gvk.Group != "" {
		name += "." + r.gvk.Group
	}
	if r.where != "" {
		name += " " + r.where
	}
	return cmp.Or(name, r.gvk.Kind)
}
