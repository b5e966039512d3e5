package control

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables"
)

// A view is a snapshot from the viewpoint of one Node: the snapshot, the configuration of the Node's
// switch, and the Pods of the Node. Nothing writes a finished view.
type view struct {
	*cluster.Cluster
	node     string
	config   tables.Config
	pipeline *tables.Pipeline
	names    *flow.Names
	// here are the Pods of this Node that may have a port: not terminated, and not in the
	// Node's network.
	here map[cluster.Key]*cluster.Pod
	// ports maps Pods to their ports.
	ports map[cluster.Name]cluster.SwitchPort
	// nodeIPs are the addresses of all Nodes.
	nodeIPs map[netip.Addr]bool
	zone    string // the Node's topology zone
}

// cookieRound is the round number in cookies. Antrea counts rounds to separate the entries of earlier
// agents. Here the ledger knows all entries of an earlier agent, so the number is constant.
const cookieRound = 2

// controllerID is the id= of controller actions. Any number works, because there is one controller.
const controllerID = 1

// Names of the ports through which application-layer policies send traffic.
const (
	l7TargetPort = "antrea-l7-tap0"
	l7ReturnPort = "antrea-l7-tap1"
)

// newView makes the view of a Node on a snapshot. was is its last view, or nil. keys are the objects that
// differ; nil: all may. A Node without a NodeConfig, or without address ranges for its Pods, has no view.
func newView(c *cluster.Cluster, node string, was *view, keys []cluster.Key) (*view, error) {
	nc, n := c.NodeConfig(node), c.Node(node)
	if nc == nil {
		var there []string
		for k := range c.NodeConfigs {
			there = append(there, k.Name)
		}
		return nil, fmt.Errorf("node %s: there is no NodeConfig of that name%s", node, flow.Suggest(node, there))
	}
	if nc.External() {
		if n != nil {
			return nil, fmt.Errorf("node %s: the NodeConfig says that it is external, and there is a Node of that name", node)
		}
		n = &cluster.Node{}
	} else if n == nil || len(n.PodCIDRs) == 0 {
		return nil, fmt.Errorf("node %s: there is no Node of that name with podCIDRs", node)
	}
	v := &view{Cluster: c, node: node, config: tableConfig(nc, n), zone: n.Zone()}
	v.reuse(was, keys, nc)
	return v, nil
}

// reuse fills in what follows from the snapshot. It takes from the last view what did not change.
func (v *view) reuse(was *view, keys []cluster.Key, nc *cluster.NodeConfig) {
	touched := touchedKinds(keys)
	fresh := was == nil || keys == nil
	if fresh || touched[cluster.KindPod] {
		v.here = podsHere(v.Cluster, v.node, was, keys)
	} else {
		v.here = was.here
	}
	if fresh || touched[cluster.KindNode] {
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

func touchedKinds(keys []cluster.Key) map[cluster.Kind]bool {
	kinds := map[cluster.Kind]bool{}
	for _, k := range keys {
		kinds[k.Kind] = true
	}
	return kinds
}

// podsHere finds the Pods of a Node: by a search of all Pods, or from the last view and the changes.
func podsHere(c *cluster.Cluster, node string, was *view, keys []cluster.Key) map[cluster.Key]*cluster.Pod {
	here := map[cluster.Key]*cluster.Pod{}
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

func runsOn(p *cluster.Pod, node string) bool {
	return p.NodeName == node && !p.HostNetwork && !p.Terminated()
}

func nodeAddresses(c *cluster.Cluster) map[netip.Addr]bool {
	all := map[netip.Addr]bool{}
	for _, n := range c.Nodes {
		for _, a := range n.Addresses {
			all[a] = true
		}
	}
	return all
}

// samePorts reports whether the Pods of keys have the same ports from the CNI plugin. With nil, it
// compares all Pods.
func samePorts(was, now map[cluster.Key]*cluster.Pod, keys []cluster.Key) bool {
	if keys == nil {
		keys = cluster.AppendChanged(nil, was, now)
	}
	return !slices.ContainsFunc(keys, func(k cluster.Key) bool { return portOf(was[k]) != portOf(now[k]) })
}

func portOf(p *cluster.Pod) cluster.SwitchPort {
	if p == nil {
		return cluster.SwitchPort{}
	}
	return p.SwitchPort
}

// podPorts returns the ports of Pods: those of the CNI plugin and those of the NodeConfig. The latter
// take precedence.
func podPorts(nc *cluster.NodeConfig, here map[cluster.Key]*cluster.Pod) map[cluster.Name]cluster.SwitchPort {
	ports := map[cluster.Name]cluster.SwitchPort{}
	for _, p := range here {
		if p.SwitchPort.OFPort != 0 {
			ports[p.SwitchPort.Pod] = p.SwitchPort
		}
	}
	for _, p := range nc.Ports {
		if p.Pod != (cluster.Name{}) {
			ports[p.Pod] = p
		}
	}
	return ports
}

// pipelineNames are the names in dumps of a Node's switch.
func pipelineNames(p *tables.Pipeline, nc *cluster.NodeConfig, here map[cluster.Key]*cluster.Pod) *flow.Names {
	names := p.Names()
	for _, pod := range here {
		if pod.SwitchPort.OFPort != 0 {
			names.SetPort(pod.SwitchPort.OFPort, pod.SwitchPort.Name)
		}
	}
	if nc.Gateway.Name != "" {
		names.SetPort(nc.Gateway.OFPort, nc.Gateway.Name)
	}
	if nc.Tunnel.Name != "" {
		names.SetPort(nc.Tunnel.OFPort, nc.Tunnel.Name)
	}
	for _, port := range nc.Ports {
		names.SetPort(port.OFPort, port.Name)
	}
	return names
}

// tableConfig is the configuration of the tables from a Node's own objects.
func tableConfig(nc *cluster.NodeConfig, n *cluster.Node) tables.Config {
	c := tables.Config{
		Release:           nc.Release,
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
		Bypasses:          nc.Bypasses,
	}
	if nc.External() {
		c.Encap, c.PodCIDRs = tables.NoEncap, []netip.Prefix{netip.PrefixFrom(netip.IPv4Unspecified(), 0)} // sets the family
		return c
	}
	for _, p := range nc.Ports {
		switch port := (tables.Port{Name: p.Name, No: p.OFPort, MAC: p.MAC}); p.Role {
		case cluster.RoleUplink:
			c.Uplink = port
		case cluster.RoleBridge:
			c.Bridge = port
		}
	}
	target, hasTarget := portNamed(nc, l7TargetPort)
	back, hasReturn := portNamed(nc, l7ReturnPort)
	c.Features.L7Policy = c.Features.L7Policy && hasTarget && hasReturn
	if c.Features.L7Policy {
		c.L7Target, c.L7Return = target, back
	}
	return c
}

// union is a followed by the addresses of b that a lacks.
func union(a, b []netip.Addr) []netip.Addr {
	all := slices.Clone(a)
	for _, x := range b {
		if !slices.Contains(all, x) {
			all = append(all, x)
		}
	}
	return all
}

// tableFeatures returns the features of the gates. Application-layer policies also need two ports
// (tableConfig).
func tableFeatures(nc *cluster.NodeConfig) tables.Features {
	if nc.External() {
		return tables.Features{ExternalNode: true, AntreaPolicy: true}
	}
	proxy := nc.Feature("AntreaProxy", true)
	return tables.Features{
		Proxy:          proxy,
		ProxyAll:       proxy && nc.ProxyAll,
		AntreaPolicy:   nc.Feature("AntreaPolicy", true),
		Egress:         nc.Feature("Egress", true),
		EgressQoS:      nc.Feature("EgressTrafficShaping", false),
		TrafficControl: nc.Feature("TrafficControl", true),
		L7Policy:       nc.Feature("L7NetworkPolicy", true),
		Multicast:      nc.Feature("Multicast", false),
		FlexibleIPAM:   nc.Feature("AntreaIPAM", false),
		DSR:            proxy && nc.Feature("LoadBalancerModeDSR", false),
	}
}

// portNamed finds a port of the switch by its name.
func portNamed(n *cluster.NodeConfig, name string) (tables.Port, bool) {
	for _, p := range n.Ports {
		if p.Name == name {
			return tables.Port{Name: p.Name, No: p.OFPort, MAC: p.MAC}, true
		}
	}
	return tables.Port{}, false
}

// change is the difference between two views of a Node.
type change struct {
	was  *view // nil at the start
	now  *view
	keys []cluster.Key // objects that differ
	kind map[cluster.Kind]bool
	// all: the tables themselves changed, so every entry is made again.
	all bool
}

// newChange compares two views. keys are the objects that differ; nil: all may.
func newChange(was, now *view, keys []cluster.Key) *change {
	if was == nil {
		keys = changedKeys(cluster.EmptyCluster(), now.Cluster)
	} else if keys == nil {
		keys = changedKeys(was.Cluster, now.Cluster)
	}
	return &change{
		was: was, now: now, keys: keys, kind: touchedKinds(keys),
		all: was == nil || was.pipeline != now.pipeline,
	}
}

// touches reports whether objects of one of the kinds differ.
func (c *change) touches(kinds ...cluster.Kind) bool {
	return slices.ContainsFunc(kinds, func(k cluster.Kind) bool { return c.kind[k] })
}

// affected returns the objects of a kind that a change concerns: those that differ, and all present ones
// if the tables changed.
func affected[T any](c *change, kind cluster.Kind, present map[cluster.Key]T) []cluster.Key {
	var keys []cluster.Key
	for _, k := range c.keys {
		if k.Kind == kind {
			keys = append(keys, k)
		}
	}
	if c.all {
		keys = slices.AppendSeq(keys, maps.Keys(present))
	}
	return c.now.sortByPlace(keys)
}

// sortByPlace sorts keys of objects and removes duplicates. Objects that are gone come first, then those of
// the manifests in the order of files and lines.
func (v *view) sortByPlace(keys []cluster.Key) []cluster.Key {
	type placed struct {
		key cluster.Key
		at  cluster.Source
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
	if c.was == nil || c.touches(cluster.KindNodeConfig) {
		return true
	}
	return slices.ContainsFunc(c.keys, func(k cluster.Key) bool {
		return k.Kind == cluster.KindPod && (c.was.here[k] != nil || c.now.here[k] != nil)
	})
}

// changedKeys finds the objects that differ between two snapshots. An unchanged object is the same
// pointer in both.
func changedKeys(was, now *cluster.Cluster) (keys []cluster.Key) {
	keys = cluster.AppendChanged(keys, was.NodeConfigs, now.NodeConfigs)
	keys = cluster.AppendChanged(keys, was.Nodes, now.Nodes)
	keys = cluster.AppendChanged(keys, was.Namespaces, now.Namespaces)
	keys = cluster.AppendChanged(keys, was.Pods, now.Pods)
	keys = cluster.AppendChanged(keys, was.ExternalEntities, now.ExternalEntities)
	keys = cluster.AppendChanged(keys, was.Services, now.Services)
	keys = cluster.AppendChanged(keys, was.EndpointSlices, now.EndpointSlices)
	keys = cluster.AppendChanged(keys, was.NetworkPolicies, now.NetworkPolicies)
	keys = cluster.AppendChanged(keys, was.AntreaPolicies, now.AntreaPolicies)
	keys = cluster.AppendChanged(keys, was.Tiers, now.Tiers)
	keys = cluster.AppendChanged(keys, was.Groups, now.Groups)
	keys = cluster.AppendChanged(keys, was.Egresses, now.Egresses)
	keys = cluster.AppendChanged(keys, was.ExternalIPPools, now.ExternalIPPools)
	keys = cluster.AppendChanged(keys, was.TrafficControls, now.TrafficControls)
	return cluster.AppendChanged(keys, was.Traceflows, now.Traceflows)
}
