package pods

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"

	"github.com/antrail/antrail/bench/ovs"
	"github.com/antrail/antrail/bench/report"
	"github.com/antrail/antrail/bench/testbed"
	"github.com/antrail/antrail/bench/workload"
	"github.com/antrail/antrail/lab"
	"github.com/antrail/antrail/ports"
)

// ovsUplink is the bridge with a Node's eth0 and its address. Open vSwitch's userspace datapath looks
// there for its way to other Nodes.
const ovsUplink = "br-phy"

// openOVSTunnel opens client-a and client-b of a lab's Nodes, each on an Open vSwitch with its Node's
// entries. Their ports are packet sockets: AF_XDP ports poll all the time, and those of two Nodes would
// take two processors.
func openOVSTunnel(ctx context.Context) (*pair, error) {
	name := ovs.Version()
	if why := ovs.Missing(); why != nil {
		return nil, report.MissingError{Name: name, Why: why}
	}
	var started []*ovs.Switch
	o, err := testbed.OpenOverlay(name, func(o *testbed.Overlay, i int) error {
		s, err := startOVSNode(ctx, o, i)
		if s != nil {
			started = append(started, s)
		}
		return err
	})
	end := func() (err error) {
		for _, s := range started {
			err = errors.Join(err, s.Close())
		}
		return err
	}
	if err != nil {
		return nil, errors.Join(err, end())
	}
	p := overlayPair(o, name, lab.TwoNodes().Nodes[1].Pods[0].Address.V4.String())
	for _, s := range started {
		p.switches = append(p.switches, s.PID())
	}
	p.close = func() error { return errors.Join(end(), o.Close()) }
	return p, nil
}

// startOVSNode makes Node i: its pod, a switch with its entries, and the switch's way to the other Node.
func startOVSNode(ctx context.Context, o *testbed.Overlay, i int) (s *ovs.Switch, err error) {
	n, plan := o.Nodes[i], lab.TwoNodes().Nodes[i]
	pod := plan.Pods[0]
	if err := addLabPod(n, &plan, &pod); err != nil {
		return nil, err
	}
	s, err = ovs.StartIn(ctx, n)
	if err != nil {
		return nil, err
	}
	program, err := workload.ExampleProgram("two-nodes/node-" + string("ab"[i]))
	if err != nil {
		return s, err
	}
	err = s.Install(ctx, program, map[string]ovs.Port{
		pod.Name:      {Link: pod.Name, Kind: "system"},
		"antrea-tun0": {Link: "antrea-tun0", Kind: "geneve"},
	}, "--", "set", "interface", "antrea-tun0", "options:remote_ip=flow", "options:key=flow")
	return s, errors.Join(err, connectUplink(ctx, n, s, i))
}

// addLabPod gives a Node one of the lab's pods. The pod itself cuts segments and fills in checksums. It has
// a neighbour entry for its gateway, which does not exist.
func addLabPod(n *testbed.Node, plan *lab.Node, pod *lab.Pod) error {
	if err := n.AddPod(n.Pods[0], pod.Name, netip.PrefixFrom(pod.Address.V4, plan.PodCIDR.V4.Bits()).String(), net.HardwareAddr(pod.MAC[:])); err != nil {
		return err
	}
	return testbed.Within(n.Pods[0])(func() error {
		link, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		gateway := &netlink.Neigh{LinkIndex: link.Attrs().Index, State: netlink.NUD_PERMANENT, IP: plan.Gateway.V4.AsSlice(), HardwareAddr: plan.GatewayMAC[:]}
		return errors.Join(ports.DisableTxChecksum("eth0"), netlink.NeighSet(gateway), testbed.AddRoute("0.0.0.0/0", plan.Gateway.V4))
	})
}

// uplinkMAC is the MAC address of Node i on the underlay.
func uplinkMAC(i int) string { return fmt.Sprintf("02:77:00:00:00:0%d", i+1) }

// connectUplink gives a Node's eth0, with its address, to its switch. It also tells the switch where the
// other Node is, since the switch reads neither the kernel's routes nor its neighbours here.
func connectUplink(ctx context.Context, n *testbed.Node, s *ovs.Switch, i int) error {
	mine, other := testbed.NodeAddresses()[i], testbed.NodeAddresses()[1-i].Addr()
	err := s.Vsctl(ctx, "add-br", ovsUplink, "--", "set", "bridge", ovsUplink, "datapath_type=netdev", "fail-mode=standalone", "other-config:hwaddr="+uplinkMAC(i),
		"--", "add-port", ovsUplink, "eth0", "--", "set", "interface", "eth0", "type=system")
	err = errors.Join(err, testbed.Within(n.NS)(func() error { return moveAddress("eth0", ovsUplink, mine.String()) }))
	for _, command := range [][]string{
		{"ovs/route/add", mine.Masked().String(), ovsUplink},
		{"tnl/neigh/set", ovsUplink, other.String(), uplinkMAC(1 - i)},
	} {
		if err == nil {
			err = s.AppctlUntilDone(ctx, command...)
		}
	}
	return err
}

// moveAddress moves an address from a link to another one.
func moveAddress(from, to, address string) error {
	link, err := netlink.LinkByName(from)
	if err != nil {
		return err
	}
	a, err := netlink.ParseAddr(address)
	if err != nil {
		return err
	}
	return errors.Join(ports.DisableTxChecksum(from), netlink.AddrDel(link, a), testbed.SetLinkAddress(to, address))
}
