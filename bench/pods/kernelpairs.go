package pods

import (
	"errors"
	"fmt"

	"github.com/antrail/antrail/bench/testbed"
	"github.com/vishvananda/netns"
)

// plainClient and plainServer are the pods' addresses where no pipeline prescribes others.
const plainClient, plainServer = "10.66.0.1", "10.66.0.2"

// The names of contenders without a switch.
const (
	bridgeName = "Linux bridge"
	directName = "direct veth"
	bareName   = "bare packet sockets"
	vxlanName  = "Linux VXLAN"
	routedName = "routed, no tunnel"
)

// openBridge opens two pods on a Linux bridge.
func openBridge() (*pair, error) {
	n, err := testbed.NewNode(2)
	if err != nil {
		return nil, err
	}
	err = testbed.Within(n.NS)(func() error { return testbed.AddBridge(testbed.PodMTU) })
	for i, address := range []string{plainClient, plainServer} {
		link := fmt.Sprintf("pod%d", i)
		err = errors.Join(err, n.AddPod(n.Pods[i], link, address+"/24", nil), testbed.Within(n.NS)(func() error { return testbed.AddToBridge(link) }))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("bridge: %w", err), n.Close())
	}
	return nodePair(n, bridgeName, n.Pods[0], n.Pods[1]), nil
}

// openDirect opens two pods with nothing but a veth between them.
func openDirect() (*pair, error) {
	n, err := testbed.NewNode(1)
	if err != nil {
		return nil, err
	}
	err = errors.Join(n.AddPod(n.Pods[0], "server", plainClient+"/24", nil), testbed.Within(n.NS)(func() error { return testbed.SetLinkAddress("server", plainServer+"/24") }))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("direct veth: %w", err), n.Close())
	}
	return nodePair(n, directName, n.Pods[0], n.NS), nil
}

// nodePair is two pods of a Node as a contender.
func nodePair(n *testbed.Node, name string, client, server netns.NsHandle) *pair {
	return &pair{name: name, client: testbed.Within(client), server: testbed.Within(server), address: plainServer + ":80", close: n.Close}
}
