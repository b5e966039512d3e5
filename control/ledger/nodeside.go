package ledger

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/antrail/antrail/control/cluster"
)

// NodeSide is what the objects in the switch want of the Node around it. The Node leads
// traffic into the pipeline, and translates what leaves with the mark of an Egress. The
// NodeSide belongs to a part's Desired, so the Node leads only traffic to the switch that the
// switch serves. The lists of Total are sorted and hold nothing twice.
type NodeSide struct {
	// ServiceCIDRs and NodePortAddresses are the NodeConfig's. Without proxyAll, when only
	// Pods are served, they are empty.
	ServiceCIDRs      []netip.Prefix
	NodePortAddresses []netip.Addr
	NodePorts         []NodePort
	// External are the external IPs and those of load balancers.
	External []netip.Addr
	// Egresses are the addresses of Egresses that this Node holds.
	Egresses []EgressMark
	// FarEgresses are the addresses that another Node holds. The tunnel leads to them.
	FarEgresses []netip.Addr
	// Peers are the pod ranges of other Nodes that the switch leads to.
	Peers []PeerPods
	// Pods are the Pods of this Node whose routes, made by another CNI, must lead to the switch.
	Pods []netip.Addr
	// Multicast are the other Nodes' addresses. The tunnel brings their pods' packets to groups,
	// so the Node drops the copies from the underlay.
	Multicast []netip.Addr
}

// PeerPods is a range of another Node's pods.
type PeerPods struct {
	Node    string
	Address netip.Addr // where the tunnel ends, if there is one
	PodCIDR netip.Prefix
	Gateway netip.Addr // next hop to them, in the range
	NextHop netip.Addr // without a tunnel, the Node itself; invalid with a tunnel
}

// NodePort is a port of the Node's addresses of one family, 4 or 6.
type NodePort struct {
	Proto  cluster.Protocol
	Family uint8
	Port   uint16
}

// EgressMark is an Egress' address, and the mark of the packets that it translates.
type EgressMark struct {
	Addr netip.Addr
	Mark uint8
}

// add appends another NodeSide.
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

// tidy sorts the lists and removes duplicates.
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

// Same reports whether two NodeSides are equal, in the same order.
func (n *NodeSide) Same(o *NodeSide) bool {
	return slices.Equal(n.ServiceCIDRs, o.ServiceCIDRs) && slices.Equal(n.NodePortAddresses, o.NodePortAddresses) &&
		slices.Equal(n.NodePorts, o.NodePorts) && slices.Equal(n.External, o.External) &&
		slices.Equal(n.Egresses, o.Egresses) && slices.Equal(n.FarEgresses, o.FarEgresses) &&
		slices.Equal(n.Peers, o.Peers) && slices.Equal(n.Pods, o.Pods) && slices.Equal(n.Multicast, o.Multicast)
}

// none reports whether the NodeSide wants nothing.
func (n *NodeSide) none() bool { return n.Same(&NodeSide{}) }

// Restore sets the total of an earlier process. It holds until a part settles.
func (n *NodeSides) Restore(sum *NodeSide) { n.sum = sum }

// NodeSides holds the NodeSide of each part in the switch.
type NodeSides struct {
	of  map[Part]*NodeSide
	sum *NodeSide // of all parts; nil: out of date
}

// NewNodeSides returns NodeSides without parts.
func NewNodeSides() NodeSides { return NodeSides{of: map[Part]*NodeSide{}} }

// Settle sets what a part in the switch wants of the Node. A nil d means that the part has gone.
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

// Total is the sum of all parts. The caller must not write it.
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
