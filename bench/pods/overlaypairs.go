package pods

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/antrail/antrail/bench/testbed"
)

// overlayPair is the pods of two Nodes as a contender. server is the address of the second pod.
func overlayPair(o *testbed.Overlay, name, server string) *pair {
	return &pair{name: name, client: testbed.Within(o.Nodes[0].Pods[0]), server: testbed.Within(o.Nodes[1].Pods[0]), address: net.JoinHostPort(server, "80"), close: o.Close}
}

// openRouted opens two pods whose Nodes route, without a tunnel.
func openRouted() (*pair, error) {
	address := func(node, host int) string { return fmt.Sprintf("10.66.%d.%d", node, host) }
	o, err := testbed.OpenOverlay(routedName, func(o *testbed.Overlay, i int) error {
		n, far := o.Nodes[i], 1-i
		err := n.AddPod(n.Pods[0], "pod", address(i, 2)+"/24", nil)
		return errors.Join(err, testbed.Within(n.NS)(func() error {
			return errors.Join(testbed.SetLinkAddress("pod", address(i, 1)+"/24"), os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644),
				testbed.AddRoute(address(far, 0)+"/24", testbed.NodeAddresses()[far].Addr()))
		}), testbed.Within(n.Pods[0])(func() error { return testbed.AddRoute("0.0.0.0/0", netip.MustParseAddr(address(i, 1))) }))
	})
	if err != nil {
		return nil, err
	}
	return overlayPair(o, routedName, address(1, 2)), nil
}

// openVXLAN opens two pods on bridges that the kernel's VXLAN joins.
func openVXLAN() (*pair, error) {
	o, err := testbed.OpenOverlay(vxlanName, func(o *testbed.Overlay, i int) error {
		n := o.Nodes[i]
		err := errors.Join(testbed.Within(n.NS)(func() error { return testbed.AddBridge(testbed.PodMTU) }), n.AddPod(n.Pods[0], "pod", []string{plainClient, plainServer}[i]+"/24", nil))
		return errors.Join(err, testbed.Within(n.NS)(func() error {
			return errors.Join(testbed.AddToBridge("pod"), testbed.AddVXLAN(testbed.NodeAddresses()[i].Addr(), testbed.NodeAddresses()[1-i].Addr()), testbed.AddToBridge("vxlan"), testbed.SetLinkUp("vxlan"))
		}))
	})
	if err != nil {
		return nil, err
	}
	return overlayPair(o, vxlanName, plainServer), nil
}
