package testbed

import (
	"errors"
	"net"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// PodMTU is the MTU of pods in a lab. All contenders' pods have it.
const PodMTU = 1450

// Node is the network namespaces of a Node and its pods.
type Node struct {
	// NS is the Node's own namespace.
	NS netns.NsHandle
	// Pods are the namespaces of its pods.
	Pods []netns.NsHandle
	// MTU is the MTU of links that AddPod makes, PodMTU at first.
	MTU int
}

// NewNode makes a Node with so many pods. It has no links yet.
func NewNode(pods int) (*Node, error) {
	n := &Node{NS: netns.None(), MTU: PodMTU}
	var err error
	if n.NS, err = NewNamespace(); err != nil {
		return nil, err
	}
	for range pods {
		ns, err := NewNamespace()
		if err != nil {
			return nil, errors.Join(err, n.Close())
		}
		n.Pods = append(n.Pods, ns)
	}
	return n, nil
}

// Close gives the namespaces back.
func (n *Node) Close() error {
	var errs []error
	for _, ns := range append(n.Pods, n.NS) {
		if ns.IsOpen() {
			errs = append(errs, ns.Close())
		}
	}
	return errors.Join(errs...)
}

// AddPod gives a pod its eth0, with an address in CIDR notation. The other end is a link of the Node.
// If mac is nil, the kernel picks eth0's MAC address.
func (n *Node) AddPod(pod netns.NsHandle, link, address string, mac net.HardwareAddr) error {
	err := Within(n.NS)(func() error {
		attrs := netlink.NewLinkAttrs()
		attrs.Name, attrs.MTU, attrs.NumTxQueues, attrs.NumRxQueues = link, n.MTU, 1, 1
		veth := &netlink.Veth{LinkAttrs: attrs, PeerName: "eth0", PeerMTU: uint32(n.MTU), PeerNamespace: netlink.NsFd(pod), PeerHardwareAddr: mac}
		return errors.Join(netlink.LinkAdd(veth), SetLinkUp(link))
	})
	if err != nil {
		return err
	}
	return Within(pod)(func() error { return SetLinkAddress("eth0", address) })
}
