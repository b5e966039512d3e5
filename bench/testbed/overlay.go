package testbed

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/antrail/antrail/lab"
)

// Overlay is two Nodes with one pod each, and a bridge between the Nodes. It has the shape of a lab, for
// contenders other than antrail.
type Overlay struct {
	under *Node // has the bridge; its pods are the Nodes
	// Nodes are the two Nodes.
	Nodes [2]*Node
}

// underlayMTU is the MTU of a lab's underlay.
const underlayMTU = 1500

// NodeAddresses are the addresses of both Nodes, which are those of a lab.
func NodeAddresses() (a [2]netip.Prefix) {
	for i, n := range lab.TwoNodes().Nodes {
		a[i] = n.Address.V4
	}
	return a
}

// newOverlay makes the Nodes, each with its eth0 on the underlay. The pods' namespaces are empty.
func newOverlay() (*Overlay, error) {
	under, err := NewNode(2)
	if err != nil {
		return nil, err
	}
	o := &Overlay{under: under}
	under.MTU = underlayMTU
	err = Within(under.NS)(func() error { return AddBridge(underlayMTU) })
	for i, address := range NodeAddresses() {
		link := fmt.Sprintf("node%d", i)
		err = errors.Join(err, under.AddPod(under.Pods[i], link, address.String(), nil), Within(under.NS)(func() error { return AddToBridge(link) }))
		pod, failed := NewNamespace()
		o.Nodes[i] = &Node{NS: under.Pods[i], MTU: PodMTU}
		if err = errors.Join(err, failed); failed == nil {
			o.Nodes[i].Pods = append(o.Nodes[i].Pods, pod)
		}
	}
	if err != nil {
		return nil, errors.Join(err, o.Close())
	}
	return o, nil
}

// Close gives the namespaces back.
func (o *Overlay) Close() error {
	var errs []error
	for _, n := range o.Nodes {
		if n == nil {
			continue
		}
		for _, pod := range n.Pods {
			errs = append(errs, pod.Close())
		}
	}
	return errors.Join(append(errs, o.under.Close())...)
}

// OpenOverlay makes an overlay and calls ready for Node 0 and Node 1. Errors begin with name.
func OpenOverlay(name string, ready func(o *Overlay, i int) error) (*Overlay, error) {
	o, err := newOverlay()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for i := range o.Nodes {
		err = errors.Join(err, ready(o, i))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), o.Close())
	}
	return o, nil
}
