package control

import (
	"fmt"
	"maps"
	"slices"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/ledger"
	"github.com/antrail/antrail/tables"
)

// This Node, other Nodes and this Node's Pods.

// nodeBuilder makes the entries that the pipeline has before any other object: those of the tables
// themselves, the gateway and the tunnel. They belong to the Node's NodeConfig. It also makes the
// entries that lead to other Nodes.
type nodeBuilder struct{ ranges podRanges }

func (nodeBuilder) settled(ledger.Part, *ledger.Desired) {}

func (b nodeBuilder) build(c *change, w *wants) {
	if c.all {
		w.fine(b.config(c.now).Object)
		w.want(b.config(c.now), b.static(c.now))
	}
	if why := c.now.routesElsewhere(); why != "" {
		for _, k := range affected(c, cluster.KindNode, c.now.Nodes) {
			w.want(ledger.Part{Object: k}, nil)
			if c.now.Nodes[k] != nil {
				w.ignore(k, why)
			}
		}
		return
	}
	for _, k := range b.ranges.freeChanged(c.now, affected(c, cluster.KindNode, c.now.Nodes)) {
		b.peer(c.now, k, w)
	}
}

// routesElsewhere is the reason why the switch does not lead to other Nodes; "" if it does.
func (v *view) routesElsewhere() string {
	switch {
	case v.config.Features.ExternalNode:
		return "this Node is external: the machine's own routes lead to others"
	case v.config.Encap == tables.PolicyOnly:
		return "trafficEncapMode is networkPolicyOnly: another CNI's routes lead to its Pods"
	}
	return ""
}

func (nodeBuilder) config(v *view) ledger.Part {
	return ledger.Part{Object: cluster.Key{Kind: cluster.KindNodeConfig, Name: v.node}}
}

func (b nodeBuilder) static(v *view) *ledger.Desired {
	d := &ledger.Desired{Meters: v.pipeline.Meters()}
	o := ledger.Origin{Object: b.config(v).Object}
	d.AddEntries(o, v.pipeline.Static()...)
	for _, g := range v.pipeline.StaticGroups() {
		d.AddGroup(o, g)
	}
	if v.config.Features.ProxyAll {
		d.Node = ledger.NodeSide{ServiceCIDRs: v.config.ServiceCIDRs, NodePortAddresses: v.config.NodePortAddresses}
	}
	return d
}

// peer makes the entries that lead to another Node.
func (b nodeBuilder) peer(v *view, k cluster.Key, w *wants) {
	n := v.Nodes[k]
	if n == nil || n.Key.Name == v.node {
		w.want(ledger.Part{Object: k}, nil)
		return
	}
	if len(n.PodCIDRs) == 0 || len(n.Addresses) == 0 {
		w.want(ledger.Part{Object: k}, nil)
		w.hold(k, "the Node has no podCIDRs or no address yet")
		return
	}
	peer := tables.Peer{NodeIPs: n.Addresses, PodCIDRs: n.PodCIDRs}
	for _, p := range n.PodCIDRs {
		peer.GatewayIPs = append(peer.GatewayIPs, p.Masked().Addr().Next())
	}
	if !v.pipeline.Reaches(peer) {
		w.want(ledger.Part{Object: k}, nil)
		w.hold(k, "the Node has no address by which its Pods are reached")
		return
	}
	if err := b.ranges.claim(v, n); err != nil {
		w.want(ledger.Part{Object: k}, nil)
		w.refuse(k, "%v", err)
		return
	}
	d := &ledger.Desired{Node: ledger.NodeSide{Peers: podsOfPeer(v, n, peer)}}
	d.AddEntries(ledger.Origin{Object: k, Field: "spec.podCIDRs"}, v.pipeline.Peer(peer)...)
	w.fine(k)
	w.want(ledger.Part{Object: k}, d)
}

// podsOfPeer is the routes that this Node needs for a peer's Pods.
func podsOfPeer(v *view, n *cluster.Node, peer tables.Peer) (all []ledger.PeerPods) {
	for i, p := range n.PodCIDRs {
		end, tunnel := v.pipeline.TunnelEnd(peer, p.Addr())
		hop := v.pipeline.NextHop(peer, p.Addr())
		if tunnel || hop.IsValid() {
			all = append(all, ledger.PeerPods{Node: n.Key.Name, Address: end, PodCIDR: p, Gateway: peer.GatewayIPs[i], NextHop: hop})
		}
	}
	return all
}

// podBuilder makes the entries of this Node's Pods.
type podBuilder struct{}

func (podBuilder) settled(ledger.Part, *ledger.Desired) {}

func (b podBuilder) build(c *change, w *wants) {
	keys := affected(c, cluster.KindPod, c.now.here)
	if !c.all && c.touches(cluster.KindNodeConfig) {
		keys = c.now.sortByPlace(slices.AppendSeq(keys, maps.Keys(c.now.here)))
	}
	for _, k := range keys {
		if c.now.here[k] != nil || c.was != nil && c.was.here[k] != nil {
			b.pod(c.now, k, w)
		}
	}
}

// pod makes the entries of one Pod, or removes them if it no longer runs here.
func (podBuilder) pod(v *view, k cluster.Key, w *wants) {
	part := ledger.Part{Object: k}
	pod, here := v.here[k]
	if !here {
		w.want(part, nil)
		return
	}
	value, why := v.localPod(pod)
	if why != "" {
		w.want(part, nil)
		w.hold(k, "%s", why)
		return
	}
	d := &ledger.Desired{Owns: pod.IPs}
	if v.config.Encap == tables.PolicyOnly {
		d.Node.Pods = pod.IPs
	}
	d.AddEntries(ledger.Origin{Object: k}, v.pipeline.Pod(value)...)
	w.fine(k)
	w.want(part, d)
}

// localPod is a Pod of this Node as a value for the tables, or what it lacks.
func (v *view) localPod(p *cluster.Pod) (pod tables.Pod, lacks string) {
	port, ok := v.ports[cluster.Name{Namespace: p.Key.Namespace, Name: p.Key.Name}]
	switch {
	case !ok:
		return pod, "the Pod has no port on this Node's switch yet"
	case len(p.IPs) == 0:
		return pod, "the Pod has no address yet"
	}
	pod = tables.Pod{Port: tables.Port{Name: port.Name, No: port.OFPort, MAC: port.MAC}, IPs: p.IPs, VLAN: port.VLAN, Routed: port.Routed}
	if pod.VLAN != 0 && !v.pipeline.OnUnderlay(pod) {
		return pod, fmt.Sprintf("its port is in VLAN %d of the underlay, and its address is in the Node's podCIDRs", pod.VLAN)
	}
	if pod.Routed && v.pipeline.OnUnderlay(pod) {
		return pod, "it is attached by layer 3, and its address is not in the Node's podCIDRs"
	}
	return pod, ""
}

// connected returns the Pods of this Node with a port and an address, in order of their keys.
func (v *view) connected() []*cluster.Pod {
	var all []*cluster.Pod
	for _, k := range sortedKeys(v.here) {
		if _, lacks := v.localPod(v.here[k]); lacks == "" {
			all = append(all, v.here[k])
		}
	}
	return all
}

func sortedKeys[T any](m map[cluster.Key]T) []cluster.Key {
	return slices.SortedFunc(maps.Keys(m), cluster.Key.Compare)
}
