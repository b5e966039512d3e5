package ledger

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/antrail/antrail/control/cluster"
)

// NodeSide is what the objects in the switch ask of the Node around it: traffic
// of the Node and of the world has to be led into the pipeline, and what leaves
// it with an Egress' mark to be translated. It is part of what an object's part
// wants (Desired), so that the Node leads to the switch what the switch serves,
// and nothing else. The lists of the whole are sorted and hold nothing twice.
type NodeSide struct {
	// ServiceCIDRs and NodePortAddresses are the NodeConfig's; empty when only
	// Pods are served (no proxyAll).
	ServiceCIDRs      []netip.Prefix
	NodePortAddresses []netip.Addr
	NodePorts         []NodePort
	// External are the external IPs and those of load balancers.
	External []netip.Addr
	// Egresses are the addresses of Egresses that this Node holds.
	Egresses []EgressMark
	// FarEgresses are those that another Node holds: the tunnel leads to them.
	FarEgresses []netip.Addr
	// Peers are the other Nodes' pods, as far as the switch leads to them.
	Peers []PeerPods
	// Pods are this Node's that another CNI has routes to, which must lead to the switch.
	Pods []netip.Addr
	// Multicast are the other Nodes' addresses. What their pods send to groups comes by the
	// tunnel, and must not come a second time by the underlay.
	Multicast []netip.Addr
}

// PeerPods is a range of another Node's pods.
type PeerPods struct {
	Node    string
	Address netip.Addr // where the tunnel ends, if there is one
	PodCIDR netip.Prefix
	Gateway netip.Addr // next hop to them, in the range
	NextHop netip.Addr // and without a tunnel, the Node itself; not valid: not so
}

// NodePort is a port of the Node's addresses of one family, 4 or 6.
type NodePort struct {
	Proto  cluster.Protocol
	Family uint8
	Port   uint16
}

// EgressMark is an Egress' address, and the packet mark of what it translates.
type EgressMark struct {
	Addr netip.Addr
	Mark uint8
}

// add appends what another asks for.
func (n *NodeSide) add(o *NodeSide) {
	n.ServiceCIDRs = append(n.ServiceCIDRs, o.ServiceCIDRs...)
	n.NodePortAddresses = append(n.NodePortAddresses, o.NodePortAddresses...)
	n.NodePorts = append(n.NodePorts, o.NodePorts...)
	n.External = append(n.External, o.External...)
	n.Egresses = append(n.Egresses, o.Egresses...)
	n.FarEgresses = append(n.FarEgresses, o.FarEgresses...)
	n.Peers = append(n.Peers, o.Peers...)
	n.Pods = append(n.Pods, o.Pods...)
	n.Multicast = append(n.Multicast, o.Multicast...)
}

// tidy sorts the lists and takes out doubles.
func (n *NodeSide) tidy() {
	n.ServiceCIDRs = sortedSet(n.ServiceCIDRs, func(a, b netip.Prefix) int {
		return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
	})
	n.NodePortAddresses = sortedSet(n.NodePortAddresses, netip.Addr.Compare)
	n.NodePorts = sortedSet(n.NodePorts, func(a, b NodePort) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Proto, b.Proto), cmp.Compare(a.Family, b.Family))
	})
	n.External = sortedSet(n.External, netip.Addr.Compare)
	n.Egresses = sortedSet(n.Egresses, func(a, b EgressMark) int {
		return cmp.Or(cmp.Compare(a.Mark, b.Mark), a.Addr.Compare(b.Addr))
	})
	n.FarEgresses = sortedSet(n.FarEgresses, netip.Addr.Compare)
	n.Pods = sortedSet(n.Pods, netip.Addr.Compare)
	n.Multicast = sortedSet(n.Multicast, netip.Addr.Compare)
	n.Peers = sortedSet(n.Peers, func(a, b PeerPods) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), a.Gateway.Compare(b.Gateway), a.Address.Compare(b.Address))
	})
}

func sortedSet[T comparable](all []T, order func(a, b T) int) []T {
	slices.SortFunc(all, order)
	return slices.Compact(all)
}

// Same reports whether two ask for the same, in the same order.
func (n *NodeSide) Same(o *NodeSide) bool {
	return slices.Equal(n.ServiceCIDRs, o.ServiceCIDRs) && slices.Equal(n.NodePortAddresses, o.NodePortAddresses) &&
		slices.Equal(n.NodePorts, o.NodePorts) && slices.Equal(n.External, o.External) &&
		slices.Equal(n.Egresses, o.Egresses) && slices.Equal(n.FarEgresses, o.FarEgresses) &&
		slices.Equal(n.Peers, o.Peers) && slices.Equal(n.Pods, o.Pods) && slices.Equal(n.Multicast, o.Multicast)
}

// none reports whether nothing is asked for.
func (n *NodeSide) none() bool { return n.Same(&NodeSide{}) }

// Restore takes what the parts asked for in an earlier process. It holds until a part settles.
func (n *NodeSides) Restore(sum *NodeSide) { n.sum = sum }

// NodeSides are what the parts that are in the switch ask of the Node.
type NodeSides struct {
	of  map[Part]*NodeSide
	sum *NodeSide // of all; nil: to be made anew
}

// NewNodeSides has no part yet.
func NewNodeSides() NodeSides { return NodeSides{of: map[Part]*NodeSide{}} }

// Settle takes what a part asks for that is in the switch now; d is nil if the part has gone.
func (n *NodeSides) Settle(p Part, d *Desired) {
	was, now := n.of[p], &NodeSide{}
	if d != nil {
		now = &d.Node
	}
	switch {
	case was == nil && now.none(), was != nil && was.Same(now):
		return
	case now.none():
		delete(n.of, p)
	default:
		n.of[p] = now
	}
	n.sum = nil
}

// Total is what all parts together ask for. It is not written after.
func (n *NodeSides) Total() *NodeSide {
	if n.sum == nil {
		n.sum = &NodeSide{}
		for _, s := range n.of {
			n.sum.add(s)
		}
		n.sum.tidy()
	}
	return n.sum
}
