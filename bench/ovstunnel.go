package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/antrail/antrail/lab"
	"github.com/antrail/antrail/ports"
)

// ovsUplink is the bridge that has a Node's eth0 and its address: where Open
// vSwitch's userspace datapath looks for its way to other Nodes.
const ovsUplink = "br-phy"

// openOVSTunnel is client-a and client-b of the lab's Nodes, each on an Open
// vSwitch that has its Node's entries. Veths are packet sockets: AF_XDP ports
// poll all the time, and two Nodes' would take two processors from everybody.
func openOVSTunnel(ctx context.Context) (*podPair, error) {
	name := ovsVersion()
	if why := ovsMissing(); why != nil {
		return nil, missingError{name, why}
	}
	var closers []func() error
	var switches []string
	o, err := openEach(name, func(o *overlay, i int) error {
		s, end, err := o.startOVSNode(ctx, i)
		if s != nil {
			closers, switches = append(closers, end), append(switches, s.pid())
		}
		return err
	})
	end := func() (err error) {
		for _, f := range closers {
			err = errors.Join(err, f())
		}
		return err
	}
	if err != nil {
		return nil, errors.Join(err, end())
	}
	p := o.pair(name, lab.TwoNodes().Nodes[1].Pods[0].Address.V4.String())
	p.switches = switches
	p.close = func() error { return errors.Join(end(), o.close()) }
	return p, nil
}

// startOVSNode makes Node i: its pod, a switch with its entries, and the
// switch's way to the other Node.
func (o *overlay) startOVSNode(ctx context.Context, i int) (s *ovsSwitch, end func() error, err error) {
	n, plan := o.nodes[i], lab.TwoNodes().Nodes[i]
	pod := plan.Pods[0]
	if err := n.addLabPod(&plan, &pod); err != nil {
		return nil, nil, err
	}
	s, stay, err := n.startOVS(ctx)
	if err != nil {
		return nil, nil, err
	}
	end = func() error { defer close(stay); return s.close() }
	program, err := exampleProgram("two-nodes/node-" + string("ab"[i]))
	if err != nil {
		return s, end, err
	}
	err = s.install(ctx, program, map[string]ovsPort{
		pod.Name:      {pod.Name, "system"},
		"antrea-tun0": {"antrea-tun0", "geneve"},
	}, "--", "set", "interface", "antrea-tun0", "options:remote_ip=flow", "options:key=flow")
	return s, end, errors.Join(err, n.uplink(ctx, s, i))
}

// addLabPod gives a Node one of the lab's pods. Its own kernel cuts segments and
// fills in checksums, and it knows its gateway, which is not there.
func (n *node) addLabPod(plan *lab.Node, pod *lab.Pod) error {
	if err := n.addPod(n.pods[0], pod.Name, netip.PrefixFrom(pod.Address.V4, plan.PodCIDR.V4.Bits()).String(), net.HardwareAddr(pod.MAC[:])); err != nil {
		return err
	}
	return within(n.pods[0])(func() error {
		link, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		gateway := &netlink.Neigh{LinkIndex: link.Attrs().Index, State: netlink.NUD_PERMANENT, IP: plan.Gateway.V4.AsSlice(), HardwareAddr: plan.GatewayMAC[:]}
		return errors.Join(ports.DisableTxChecksum("eth0"), netlink.NeighSet(gateway), addRoute("0.0.0.0/0", plan.Gateway.V4))
	})
}

// uplinkMAC is the address of Node i on the underlay.
func uplinkMAC(i int) string { return fmt.Sprintf("02:77:00:00:00:0%d", i+1) }

// uplink hands a Node's eth0, with its address, to its switch, which is told
// where the other Node is: it reads neither the kernel's routes nor its
// neighbours here.
func (n *node) uplink(ctx context.Context, s *ovsSwitch, i int) error {
	mine, other := nodeAddresses()[i], nodeAddresses()[1-i].Addr()
	err := s.vsctl(ctx, "add-br", ovsUplink, "--", "set", "bridge", ovsUplink, "datapath_type=netdev", "fail-mode=standalone", "other-config:hwaddr="+uplinkMAC(i),
		"--", "add-port", ovsUplink, "eth0", "--", "set", "interface", "eth0", "type=system")
	err = errors.Join(err, within(n.ns)(func() error { return moveAddress("eth0", ovsUplink, mine.String()) }))
	for _, command := range [][]string{
		{"ovs/route/add", mine.Masked().String(), ovsUplink},
		{"tnl/neigh/set", ovsUplink, other.String(), uplinkMAC(1 - i)},
	} {
		if err == nil {
			err = s.insist(ctx, command...)
		}
	}
	return err
}

// insist asks until it is done: the switch learns of the kernel's addresses a
// moment after they are there.
func (s *ovsSwitch) insist(ctx context.Context, command ...string) error {
	for deadline := time.Now().Add(daemonPatience); ; wait(ctx, 50*time.Millisecond) {
		_, err := s.appctl(ctx, command[0], command[1:]...)
		if err == nil || ctx.Err() != nil || time.Now().After(deadline) {
			return err
		}
	}
}

// moveAddress takes an address off a link and gives it to another one.
func moveAddress(from, to, address string) error {
	link, err := netlink.LinkByName(from)
	if err != nil {
		return err
	}
	a, err := netlink.ParseAddr(address)
	if err != nil {
		return err
	}
	return errors.Join(ports.DisableTxChecksum(from), netlink.AddrDel(link, a), setAddress(to, address))
}
