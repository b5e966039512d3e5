package pods

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/vishvananda/netlink"

	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/bench/ovs"
	"github.com/antrail/antrail/bench/report"
	"github.com/antrail/antrail/bench/rig"
	"github.com/antrail/antrail/bench/testbed"
	"github.com/antrail/antrail/bench/workload"
	"github.com/antrail/antrail/examples"
	"github.com/antrail/antrail/lab"
)

// nodePort is the NodePort that leads to the pod.
const nodePort = 30004

// gatewayService is the NodePort's Service in the lab. It leads to the pod of the first Node alone.
const gatewayService = `apiVersion: v1
kind: Service
metadata: {name: gateway, namespace: default}
spec: {type: NodePort, selector: {pod: web-a}, ports: [{protocol: TCP, port: 80, targetPort: 80, nodePort: %d}]}
`

// openLabGateway opens a lab of one Node with its host outside.
func openLabGateway(ctx context.Context, r *rig.Rig, name, offload string) (*pair, error) {
	dir, err := os.MkdirTemp("", "antrail-bench")
	if err != nil {
		return nil, err
	}
	manifests := filepath.Join(dir, "web-app")
	err = errors.Join(os.CopyFS(dir, examples.FS), os.Remove(filepath.Join(manifests, "egress-trafficcontrol.yaml")),
		os.WriteFile(filepath.Join(manifests, "services.yaml"), fmt.Appendf(nil, gatewayService, nodePort), 0o600))
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	l, err := lab.Up(ctx, lab.Options{
		Nodes: 1, Binary: r.Binary, StateDir: r.StateDir, Manifests: manifests,
		Driver: config.DriverAFPacket, Offload: offload, UnderlayOffloads: true, Transient: true,
	})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	node := &l.Topology.Nodes[0]
	p, err := labPair(l, name, node.Pods[0], node.Pods[1])
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	outside, err := l.Namespace("outside")
	if err != nil {
		return nil, errors.Join(err, l.Down(), os.RemoveAll(dir))
	}
	in := *p
	in.client, in.listens, in.address = outside.Do, p.address, at(node.Address.V4.Addr(), nodePort)
	p.server, p.address, p.inward = outside.Do, at(l.Topology.Outside.V4.Addr(), 80), &in
	p.close = func() error { return errors.Join(l.Down(), os.RemoveAll(dir)) }
	return p, nil
}

// at is an address with a port.
func at(a netip.Addr, port uint16) string { return netip.AddrPortFrom(a, port).String() }

// openBridgeGateway opens a Node with a pod on a Linux bridge, and a host outside. The other Node
// of the overlay is that host.
func openBridgeGateway() (*pair, error) {
	const gateway = "10.66.0.254"
	o, err := testbed.OpenOverlay(bridgeName, func(o *testbed.Overlay, i int) error {
		if i != 0 {
			return nil
		}
		n := o.Nodes[i]
		err := n.AddPod(n.Pods[0], "pod", plainClient+"/24", nil)
		return errors.Join(err, testbed.Within(n.NS)(func() error {
			return errors.Join(testbed.AddBridge(testbed.PodMTU), testbed.AddToBridge("pod"), testbed.SetLinkAddress("bridge", gateway+"/24"),
				translate(plainClient+"/24", fmt.Sprintf("tcp dport %d dnat to %s:80", nodePort, plainClient)))
		}), testbed.Within(n.Pods[0])(func() error { return testbed.AddRoute("0.0.0.0/0", netip.MustParseAddr(gateway)) }))
	})
	if err != nil {
		return nil, err
	}
	return gatewayPair(o, bridgeName, netip.MustParseAddr(plainClient)), nil
}

// gatewayPair is the pod of the first Node of an overlay, and the second Node as the host outside.
func gatewayPair(o *testbed.Overlay, name string, pod netip.Addr) *pair {
	inside, outside := testbed.Within(o.Nodes[0].Pods[0]), testbed.Within(o.Nodes[1].NS)
	addresses := testbed.NodeAddresses()
	return &pair{
		name: name, client: inside, server: outside, address: at(addresses[1].Addr(), 80), close: o.Close,
		inward: &pair{name: name, client: outside, server: inside, listens: at(pod, 80), address: at(addresses[0].Addr(), nodePort)},
	}
}

// translate turns on forwarding in the calling thread's namespace and masquerades packets of the pods.
// If inward has a rule, it translates the destination of packets from eth0.
func translate(pods, inward string) error {
	text := "table ip nat {\n chain postrouting { type nat hook postrouting priority srcnat; ip saddr " + pods + " oifname eth0 masquerade; }\n"
	if inward != "" {
		text += " chain prerouting { type nat hook prerouting priority dstnat; iifname eth0 " + inward + "; }\n"
	}
	nft := exec.Command("nft", "-f", "-")
	nft.Stdin = strings.NewReader(text + "}\n")
	if out, err := nft.CombinedOutput(); err != nil {
		return fmt.Errorf("nft: %w: %s", err, out)
	}
	return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644)
}

// openOVSGateway opens client-a of the lab's first Node on an Open vSwitch with its Node's
// entries, and a host outside.
func openOVSGateway(ctx context.Context) (*pair, error) {
	name := ovs.Version()
	if why := ovs.Missing(); why != nil {
		return nil, report.MissingError{Name: name, Why: why}
	}
	var s *ovs.Switch
	o, err := testbed.OpenOverlay(name, func(o *testbed.Overlay, i int) (err error) {
		if i == 0 {
			s, err = startOVSGateway(ctx, o.Nodes[0])
		}
		return err
	})
	if err != nil && s != nil {
		err = errors.Join(err, s.Close())
	}
	if err != nil {
		return nil, err
	}
	p := gatewayPair(o, name, netip.Addr{})
	p.inward, p.switches = nil, []string{s.PID()}
	p.close = func() error { return errors.Join(s.Close(), o.Close()) }
	return p, nil
}

// startOVSGateway gives a Node its pod, a switch with its entries, and the gateway. The caller
// closes s, also after an error.
func startOVSGateway(ctx context.Context, n *testbed.Node) (s *ovs.Switch, err error) {
	plan := lab.TwoNodes().Nodes[0]
	pod := plan.Pods[0]
	if err := addLabPod(n, &plan, &pod); err != nil {
		return nil, err
	}
	if s, err = ovs.StartIn(ctx, n); err != nil {
		return nil, err
	}
	program, err := workload.ExampleProgram("two-nodes/node-a")
	if err != nil {
		return s, err
	}
	if err := s.Install(ctx, program, map[string]ovs.Port{pod.Name: {Link: pod.Name, Kind: "system"}}); err != nil {
		return s, err
	}
	return s, testbed.Within(n.NS)(func() error { return setGateway(&plan) })
}

// setGateway gives the gateway's link in the calling thread's namespace its addresses and MTU, and
// lets pods go out by it.
func setGateway(plan *lab.Node) error {
	const name = "antrea-gw0"
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	return errors.Join(netlink.LinkSetHardwareAddr(link, plan.GatewayMAC[:]), netlink.LinkSetMTU(link, testbed.PodMTU),
		testbed.SetLinkAddress(name, netip.PrefixFrom(plan.Gateway.V4, plan.PodCIDR.V4.Bits()).String()),
		translate(plan.PodCIDR.V4.String(), ""))
}
