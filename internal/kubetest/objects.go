package kubetest

import (
	"fmt"
	"maps"
	"reflect"
	"strings"

	"sigs.k8s.io/yaml"
)

// object is a JSON object.
type object = map[string]any

// ref names an object by the words of its URL.
type ref struct{ group, plural, namespace, name string }

// change is one step of the history. old is nil for a new object, new for a deleted one.
type change struct {
	version  int
	of       ref
	old, new object
}

// antreaKinds are the resources of crd.antrea.io, with their version.
var antreaKinds = []string{
	"tiers", "clusternetworkpolicies", "networkpolicies", "clustergroups", "groups", "externalentities", "externalnodes", "egresses", "externalippools", "trafficcontrols", "traceflows",
	"antreaagentinfos",
}

func antreaVersion(plural string) string {
	switch plural {
	case "trafficcontrols", "externalentities":
		return "v1alpha2"
	case "externalnodes":
		return "v1alpha1"
	}
	return "v1beta1"
}

// plurals are the irregular plurals of kinds.
var plurals = map[string]string{
	"NetworkPolicy": "networkpolicies", "ClusterNetworkPolicy": "clusternetworkpolicies", "Egress": "egresses", "ExternalEntity": "externalentities",
	"AdminNetworkPolicy": "adminnetworkpolicies",
}

// clusterWide are the kinds without a namespace.
var clusterWide = map[string]bool{
	"Node": true, "Namespace": true, "Tier": true, "ClusterNetworkPolicy": true, "ClusterGroup": true, "Egress": true,
	"ExternalIPPool": true, "TrafficControl": true, "AntreaAgentInfo": true, "Traceflow": true, "AdminNetworkPolicy": true, "CustomResourceDefinition": true, "ClusterRole": true, "ClusterRoleBinding": true,
}

// PluralOf returns a kind as URLs name it.
func PluralOf(kind string) string {
	if p := plurals[kind]; p != "" {
		return p
	}
	return strings.ToLower(kind) + "s"
}

// refOf returns the reference of an object.
func refOf(o object) ref {
	version, kind := text(o, "apiVersion"), text(o, "kind")
	r := ref{name: text(o, "metadata", "name"), plural: PluralOf(kind)}
	if group, _, named := strings.Cut(version, "/"); named {
		r.group = group
	}
	if !clusterWide[kind] {
		if r.namespace = text(o, "metadata", "namespace"); r.namespace == "" {
			r.namespace = "default"
		}
	}
	return r
}

// text returns the string at a path, or "".
func text(o object, path ...string) string {
	for _, p := range path[:len(path)-1] {
		o, _ = o[p].(object)
	}
	s, _ := o[path[len(path)-1]].(string)
	return s
}

// number returns the number at a path, or 0.
func number(o object, path ...string) float64 {
	for _, p := range path[:len(path)-1] {
		o, _ = o[p].(object)
	}
	n, _ := o[path[len(path)-1]].(float64)
	return n
}

// Apply creates or replaces the objects of a text of YAML documents.
func (a *API) Apply(manifests string) {
	a.t.Helper()
	for doc := range strings.SplitSeq("\n"+manifests, "\n---") {
		var o object
		if err := yaml.Unmarshal([]byte(doc), &o); err != nil {
			a.t.Fatal(err)
		}
		if o != nil {
			a.put(o)
		}
	}
}

// put creates or replaces one object.
func (a *API) put(o object) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := refOf(o)
	if r.group == antreaGroup { // stored in any version, served in one
		o["apiVersion"], _ = typeOf(r)
	}
	meta, _ := o["metadata"].(object)
	meta = maps.Clone(meta)
	if r.namespace != "" {
		meta["namespace"] = r.namespace
	}
	generation := 1.0
	if old := a.objects[r]; old != nil {
		meta["uid"] = text(old, "metadata", "uid")
		generation = number(old, "metadata", "generation")
		if !reflect.DeepEqual(old["spec"], o["spec"]) {
			generation++
		}
		if o["status"] == nil && old["status"] != nil && r.group == antreaGroup { // status is a subresource
			o["status"] = old["status"]
		}
	} else if meta["uid"] == nil {
		meta["uid"] = fmt.Sprintf("00000000-0000-4000-8000-%012d", a.version)
	}
	meta["generation"] = generation
	a.version++
	meta["resourceVersion"] = fmt.Sprint(a.version)
	o["metadata"] = meta
	a.step(change{a.version, r, a.objects[r], o})
	a.objects[r] = o
}

// Delete deletes an object by its apiVersion, kind, namespace and name.
func (a *API) Delete(apiVersion, kind, namespace, name string) {
	a.t.Helper()
	r := refOf(object{"apiVersion": apiVersion, "kind": kind, "metadata": object{"namespace": namespace, "name": name}})
	a.mu.Lock()
	defer a.mu.Unlock()
	old := a.objects[r]
	if old == nil {
		a.t.Fatalf("there is no %v", r)
	}
	a.version++
	last := maps.Clone(old)
	meta := maps.Clone(old["metadata"].(object))
	meta["resourceVersion"] = fmt.Sprint(a.version)
	last["metadata"] = meta
	a.step(change{a.version, r, last, nil})
	delete(a.objects, r)
}

// step adds a change to the history and wakes the watches.
func (a *API) step(c change) {
	a.history = append(a.history, c)
	close(a.changed)
	a.changed = make(chan struct{})
}

// Objects are the objects of a resource, by namespace/name.
func (a *API) Objects(plural string) map[string]object {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := map[string]object{}
	for r, o := range a.objects {
		if r.plural == plural {
			all[r.namespace+"/"+r.name] = o
		}
	}
	return all
}
