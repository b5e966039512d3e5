package control

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables"
)

// A view is a snapshot as one Node sees it: the snapshot, what the Node's own
// objects say of its switch, and the Pods that run here. It is not written
// after it was made.
type view struct {
	*Cluster
	node     string
	config   tables.Config
	pipeline *tables.Pipeline
	names    *flow.Names
	// here are the Pods of this Node that may have a port: neither terminated
	// nor in the Node's network.
	here map[Key]*Pod
	// ports are the ports of Pods by the Pod's name.
	ports map[Name]SwitchPort
	// nodeIPs are the addresses of all Nodes.
	nodeIPs map[netip.Addr]bool
	zone    string // the Node's topology zone
}

// cookieRound is the round number in cookies. A switch starts empty with its
// agent, so that no entries of an earlier round need to be told from the
// present ones, and the number never grows.
const cookieRound = 2

// controllerID is the id= of controller actions. There is one controller, so
// any number serves.
const controllerID = 1

// Names of the ports through which application-layer policies send traffic.
const (
	l7TargetPort = "antrea-l7-tap0"
	l7ReturnPort = "antrea-l7-tap1"
)

// newView is the view of a Node on a snapshot. was is its last view, nil when
// there is none, and keys are the objects that differ; nil: any may. A Node
// without a NodeConfig or without address ranges for its Pods has no view.
func newView(c *Cluster, node string, was *view, keys []Key) (*view, error) {
	nc, n := c.NodeConfig(node), c.Node(node)
	if nc == nil {
		var there []string
		for k := range c.NodeConfigs {
			there = append(there, k.Name)
		}
		return nil, fmt.Errorf("node %s: there is no NodeConfig of that name%s", node, flow.Suggest(node, there))
	}
	if n == nil || len(n.PodCIDRs) == 0 {
		return nil, fmt.Errorf("node %s: there is no Node of that name with podCIDRs", node)
	}
	v := &view{Cluster: c, node: node, config: tableConfig(nc, n), zone: n.Zone()}
	v.reuse(was, keys, nc)
	return v, nil
}

// reuse fills in what follows from the snapshot, as far as possible by taking
// it from the last view.
func (v *view) reuse(was *view, keys []Key, nc *NodeConfig) {
	touched := touchedKinds(keys)
	fresh := was == nil || keys == nil
	if fresh || touched[KindPod] {
		v.here = podsHere(v.Cluster, v.node, was, keys)
	} else {
		v.here = was.here
	}
	if fresh || touched[KindNode] {
		v.nodeIPs = nodeAddresses(v.Cluster)
	} else {
		v.nodeIPs = was.nodeIPs
	}
	if was != nil && reflect.DeepEqual(was.config, v.config) {
		v.pipeline = was.pipeline
	} else {
		v.pipeline = tables.New(v.config)
	}
	if was != nil && v.pipeline == was.pipeline && was.NodeConfig(v.node) == nc && samePorts(was.here, v.here, keys) {
		v.ports, v.names = was.ports, was.names
		return
	}
	v.ports, v.names = podPorts(nc, v.here), pipelineNames(v.pipeline, nc, v.here)
}

func touchedKinds(keys []Key) map[Kind]bool {
	kinds := map[Kind]bool{}
	for _, k := range keys {
		kinds[k.Kind] = true
	}
	return kinds
}

// podsHere finds the Pods of a Node: all anew, or those of the last view with
// what changed.
func podsHere(c *Cluster, node string, was *view, keys []Key) map[Key]*Pod {
	here := map[Key]*Pod{}
	if was == nil || keys == nil {
		for k, p := range c.Pods {
			if runsOn(p, node) {
				here[k] = p
			}
		}
		return here
	}
	maps.Copy(here, was.here)
	for _, k := range keys {
		if p := c.Pods[k]; p != nil && runsOn(p, node) {
			here[k] = p
		} else {
			delete(here, k)
		}
	}
	return here
}

func runsOn(p *Pod, node string) bool {
	return p.NodeName == node && !p.HostNetwork && !p.Terminated()
}

func nodeAddresses(c *Cluster) map[netip.Addr]bool {
	all := map[netip.Addr]bool{}
	for _, n := range c.Nodes {
		for _, a := range n.Addresses {
			all[a] = true
		}
	}
	return all
}

// samePorts says whether Pods kept what the CNI plugin gave them: those of the
// keys, or all when any may differ.
func samePorts(was, now map[Key]*Pod, keys []Key) bool {
	if keys == nil {
		keys = diffMaps(nil, was, now)
	}
	return !slices.ContainsFunc(keys, func(k Key) bool { return portOf(was[k]) != portOf(now[k]) })
}

func portOf(p *Pod) SwitchPort {
	if p == nil {
		return SwitchPort{}
	}
	return p.SwitchPort
}

// podPorts are the ports of Pods: those that the CNI plugin made, and those of
// the NodeConfig, which has the last word.
func podPorts(nc *NodeConfig, here map[Key]*Pod) map[Name]SwitchPort {
	ports := map[Name]SwitchPort{}
	for _, p := range here {
		if p.SwitchPort.OFPort != 0 {
			ports[p.SwitchPort.Pod] = p.SwitchPort
		}
	}
	for _, p := range nc.Ports {
		if p.Pod != (Name{}) {
			ports[p.Pod] = p
		}
	}
	return ports
}

// pipelineNames are the names that dumps of a Node's switch show.
func pipelineNames(p *tables.Pipeline, nc *NodeConfig, here map[Key]*Pod) *flow.Names {
	names := p.Names()
	for _, pod := range here {
		if pod.SwitchPort.OFPort != 0 {
			names.SetPort(pod.SwitchPort.OFPort, pod.SwitchPort.Name)
		}
	}
	names.SetPort(nc.Gateway.OFPort, nc.Gateway.Name)
	if nc.Tunnel.Name != "" {
		names.SetPort(nc.Tunnel.OFPort, nc.Tunnel.Name)
	}
	for _, port := range nc.Ports {
		names.SetPort(port.OFPort, port.Name)
	}
	return names
}

// tableConfig is what a Node's own objects say of its tables.
func tableConfig(nc *NodeConfig, n *Node) tables.Config {
	c := tables.Config{
		Features:          tableFeatures(nc),
		Gateway:           tables.Port{Name: nc.Gateway.Name, No: nc.Gateway.OFPort, MAC: nc.Gateway.MAC},
		GatewayIPs:        nc.Gateway.IPs,
		Tunnel:            tables.Port{Name: nc.Tunnel.Name, No: nc.Tunnel.OFPort},
		PodCIDRs:          n.PodCIDRs,
		NodeIPs:           union(nc.TransportIPs, n.Addresses),
		TransportIPs:      nc.TransportIPs,
		Encap:             nc.Encap,
		TransportCIDRs:    nc.TransportCIDRs,
		ServiceCIDRs:      nc.ServiceCIDRs,
		NodePortAddresses: nc.NodePortAddresses,
		EgressExcept:      nc.EgressExceptCIDRs,
		ControllerID:      controllerID,
		PacketInRate:      nc.PacketInRate,
		CookieRound:       cookieRound,
	}
	target, hasTarget := nc.port(l7TargetPort)
	back, hasReturn := nc.port(l7ReturnPort)
	c.Features.L7Policy = c.Features.L7Policy && hasTarget && hasReturn
	if c.Features.L7Policy {
		c.L7Target, c.L7Return = target, back
	}
	return c
}

// union is a, and what is in b besides.
func union(a, b []netip.Addr) []netip.Addr {
	all := slices.Clone(a)
	for _, x := range b {
		if !slices.Contains(all, x) {
			all = append(all, x)
		}
	}
	return all
}

// tableFeatures are the feature gates. Policies at the application layer also
// need their two ports.
func tableFeatures(nc *NodeConfig) tables.Features {
	proxy := nc.Feature("AntreaProxy", true)
	return tables.Features{
		Proxy:          proxy,
		ProxyAll:       proxy && nc.ProxyAll,
		AntreaPolicy:   nc.Feature("AntreaPolicy", true),
		Egress:         nc.Feature("Egress", true),
		TrafficControl: nc.Feature("TrafficControl", true),
		L7Policy:       nc.Feature("L7NetworkPolicy", true),
		DSR:            proxy && nc.Feature("LoadBalancerModeDSR", false),
	}
}

// port finds a port of the switch by its name.
func (n *NodeConfig) port(name string) (tables.Port, bool) {
	for _, p := range n.Ports {
		if p.Name == name {
			return tables.Port{Name: p.Name, No: p.OFPort, MAC: p.MAC}, true
		}
	}
	return tables.Port{}, false
}

// change is what is new between two views of a Node.
type change struct {
	was  *view // nil at the start
	now  *view
	keys []Key // that differ
	kind map[Kind]bool
	// all: the tables themselves changed, every entry is to be made anew.
	all bool
}

// newChange compares two views; keys are the objects that differ, nil: any may.
func newChange(was, now *view, keys []Key) *change {
	if was == nil {
		keys = changedKeys(EmptyCluster(), now.Cluster)
	} else if keys == nil {
		keys = changedKeys(was.Cluster, now.Cluster)
	}
	return &change{
		was: was, now: now, keys: keys, kind: touchedKinds(keys),
		all: was == nil || was.pipeline != now.pipeline,
	}
}

// touches reports whether objects of one of the kinds differ.
func (c *change) touches(kinds ...Kind) bool {
	for _, k := range kinds {
		if c.kind[k] {
			return true
		}
	}
	return false
}

// affected are the objects of a kind that a change asks to look at: those that
// differ, and all present ones when the tables did.
func affected[T any](c *change, kind Kind, present map[Key]T) []Key {
	var keys []Key
	for _, k := range c.keys {
		if k.Kind == kind {
			keys = append(keys, k)
		}
	}
	if c.all {
		keys = slices.AppendSeq(keys, maps.Keys(present))
	}
	return c.now.arrival(keys)
}

// arrival sorts keys of objects and takes out doubles: objects that are gone
// come first, then as the manifests have them, so that of two objects in one
// file the first is the earlier one.
func (v *view) arrival(keys []Key) []Key {
	type placed struct {
		key Key
		at  Source
	}
	all := make([]placed, len(keys))
	for i, k := range keys {
		all[i].key = k
		if o := v.Object(k); o != nil {
			all[i].at = o.Metadata().Source
		}
	}
	slices.SortFunc(all, func(a, b placed) int {
		return cmp.Or(cmp.Compare(a.at.File, b.at.File), cmp.Compare(a.at.Line, b.at.Line), a.key.Compare(b.key))
	})
	keys = keys[:0]
	for _, p := range slices.Compact(all) {
		keys = append(keys, p.key)
	}
	return keys
}

// podsMoved reports whether Pods of this Node or their ports differ.
func (c *change) podsMoved() bool {
	if c.was == nil || c.touches(KindNodeConfig) {
		return true
	}
	for _, k := range c.keys {
		if k.Kind == KindPod && (c.was.here[k] != nil || c.now.here[k] != nil) {
			return true
		}
	}
	return false
}

// changedKeys finds the objects that differ between two snapshots. An object
// that did not change is the same pointer in both.
func changedKeys(was, now *Cluster) (keys []Key) {
	keys = diffMaps(keys, was.NodeConfigs, now.NodeConfigs)
	keys = diffMaps(keys, was.Nodes, now.Nodes)
	keys = diffMaps(keys, was.Namespaces, now.Namespaces)
	keys = diffMaps(keys, was.Pods, now.Pods)
	keys = diffMaps(keys, was.Services, now.Services)
	keys = diffMaps(keys, was.EndpointSlices, now.EndpointSlices)
	keys = diffMaps(keys, was.NetworkPolicies, now.NetworkPolicies)
	keys = diffMaps(keys, was.AntreaPolicies, now.AntreaPolicies)
	keys = diffMaps(keys, was.Tiers, now.Tiers)
	keys = diffMaps(keys, was.Groups, now.Groups)
	keys = diffMaps(keys, was.Egresses, now.Egresses)
	keys = diffMaps(keys, was.ExternalIPPools, now.ExternalIPPools)
	return diffMaps(keys, was.TrafficControls, now.TrafficControls)
}

func diffMaps[T any](keys []Key, was, now map[Key]*T) []Key {
	for k, v := range now {
		if was[k] != v {
			keys = append(keys, k)
		}
	}
	for k := range was {
		if now[k] == nil {
			keys = append(keys, k)
		}
	}
	return keys
}
