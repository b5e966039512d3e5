package bench

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"

	"github.com/antrail/antrail/lab"
)

// overlay is two Nodes with a pod each, and a bridge between them, all in
// namespaces without names: the shape of a lab, for others than antrail.
type overlay struct {
	under *node    // whose pods are the Nodes
	nodes [2]*node // each with one pod
}

// underlayMTU is that of the labs' underlay.
const underlayMTU = 1500

// nodeAddresses are those of the lab's Nodes.
func nodeAddresses() (a [2]netip.Prefix) {
	for i, n := range lab.TwoNodes().Nodes {
		a[i] = n.Address.V4
	}
	return a
}

// newOverlay makes the Nodes, each with its eth0 on the underlay, and empty
// namespaces of pods.
func newOverlay() (*overlay, error) {
	under, err := newNode(2)
	if err != nil {
		return nil, err
	}
	o := &overlay{under: under}
	under.mtu = underlayMTU
	err = within(under.ns)(func() error { return addBridge(underlayMTU) })
	for i, address := range nodeAddresses() {
		link := fmt.Sprintf("node%d", i)
		err = errors.Join(err, under.addPod(under.pods[i], link, address.String(), nil), within(under.ns)(func() error { return enslave(link) }))
		pod, failed := newNamespace()
		o.nodes[i] = &node{ns: under.pods[i], mtu: podMTU}
		if err = errors.Join(err, failed); failed == nil {
			o.nodes[i].pods = append(o.nodes[i].pods, pod)
		}
	}
	if err != nil {
		return nil, errors.Join(err, o.close())
	}
	return o, nil
}

func (o *overlay) close() error {
	var errs []error
	for _, n := range o.nodes {
		if n == nil {
			continue
		}
		for _, pod := range n.pods {
			errs = append(errs, pod.Close())
		}
	}
	return errors.Join(append(errs, o.under.close())...)
}

// pair is the two pods, of which the server has an address.
func (o *overlay) pair(name, server string) *podPair {
	return &podPair{name: name, client: within(o.nodes[0].pods[0]), server: within(o.nodes[1].pods[0]), address: net.JoinHostPort(server, "80"), close: o.close}
}

// openEach makes an overlay and has each Node made ready by a function of its
// own, in the Node's namespace.
func openEach(name string, ready func(o *overlay, i int) error) (*overlay, error) {
	o, err := newOverlay()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for i := range o.nodes {
		err = errors.Join(err, ready(o, i))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), o.close())
	}
	return o, nil
}

// openRouted is two pods whose Nodes route, with no tunnel.
func openRouted() (*podPair, error) {
	address := func(node, host int) string { return fmt.Sprintf("10.66.%d.%d", node, host) }
	o, err := openEach(routedName, func(o *overlay, i int) error {
		n, far := o.nodes[i], 1-i
		err := n.addPod(n.pods[0], "pod", address(i, 2)+"/24", nil)
		return errors.Join(err, within(n.ns)(func() error {
			return errors.Join(setAddress("pod", address(i, 1)+"/24"), os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644),
				addRoute(address(far, 0)+"/24", nodeAddresses()[far].Addr()))
		}), within(n.pods[0])(func() error { return addRoute("0.0.0.0/0", netip.MustParseAddr(address(i, 1))) }))
	})
	if err != nil {
		return nil, err
	}
	return o.pair(routedName, address(1, 2)), nil
}

// openVXLAN is two pods on bridges that VXLAN of the kernel joins.
func openVXLAN() (*podPair, error) {
	o, err := openEach(vxlanName, func(o *overlay, i int) error {
		n := o.nodes[i]
		err := errors.Join(within(n.ns)(func() error { return addBridge(podMTU) }), n.addPod(n.pods[0], "pod", []string{plainClient, plainServer}[i]+"/24", nil))
		return errors.Join(err, within(n.ns)(func() error {
			return errors.Join(enslave("pod"), addVXLAN(nodeAddresses()[i].Addr(), nodeAddresses()[1-i].Addr()), enslave("vxlan"), setUp("vxlan"))
		}))
	})
	if err != nil {
		return nil, err
	}
	return o.pair(vxlanName, plainServer), nil
}

// addVXLAN makes a VXLAN device to one other Node in the calling thread's
// namespace.
func addVXLAN(local, remote netip.Addr) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = "vxlan", podMTU
	return netlink.LinkAdd(&netlink.Vxlan{LinkAttrs: attrs, VxlanId: 1, SrcAddr: local.AsSlice(), Group: remote.AsSlice(), Port: 4789, Learning: true})
}

// addRoute leads to a prefix by a gateway.
func addRoute(prefix string, via netip.Addr) error {
	_, dst, err := net.ParseCIDR(prefix)
	if err != nil {
		return err
	}
	return netlink.RouteAdd(&netlink.Route{Dst: dst, Gw: via.AsSlice()})
}
