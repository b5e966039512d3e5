package pods

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/antrail/antrail/bench/ovs"
	"github.com/antrail/antrail/bench/report"
	"github.com/antrail/antrail/bench/testbed"
	"github.com/antrail/antrail/bench/workload"
	"github.com/antrail/antrail/lab"
	"github.com/antrail/antrail/ports"
)

// openOVS opens client-a and web-a of a lab's first Node on an Open vSwitch with the Node's entries. Its
// ports are of a kind, ovs.System or ovs.AFXDP.
func openOVS(ctx context.Context, kind string) (*pair, error) {
	name := ovsName(kind)
	if why := ovs.Missing(); why != nil {
		return nil, report.MissingError{Name: name, Why: why}
	}
	pods := lab.TwoNodes().Nodes[0].Pods[:2]
	n, err := testbed.NewNode(len(pods))
	if err != nil {
		return nil, err
	}
	for i, pod := range pods {
		err = errors.Join(err, n.AddPod(n.Pods[i], pod.Name, pod.Address.V4.String()+"/24", net.HardwareAddr(pod.MAC[:])))
		if err == nil && kind == ovs.AFXDP {
			err = testbed.Within(n.Pods[i])(func() error { return ports.DisableTxChecksum("eth0") })
		}
	}
	var s *ovs.Switch
	if err == nil {
		s, err = ovs.StartIn(ctx, n, ovsSettings[kind]...)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), n.Close())
	}
	p := nodePair(n, name, n.Pods[0], n.Pods[1])
	p.address = net.JoinHostPort(pods[1].Address.V4.String(), "80")
	p.switches = []string{s.PID()}
	p.close = func() error { return errors.Join(s.Close(), n.Close()) }
	err = loadOVS(ctx, s, pods, kind)
	if err == nil && kind == ovs.AFXDP {
		p.setResting = s.SetResting
		err = s.SetResting(true)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), p.close())
	}
	return p, nil
}

// ovsName is the name of Open vSwitch with ports of a kind as a contender.
func ovsName(kind string) string {
	return ovs.Version() + strings.TrimSuffix(" "+kind, " "+ovs.System)
}

// ovsSettings are a switch's settings by the kind of its ports. Segments stay whole on packet sockets;
// AF_XDP has none.
var ovsSettings = map[string][]string{ovs.System: {"userspace-tso-enable=true"}}

// loadOVS loads the Node's entries. It makes the pods' links, which have the pods' names, ports of a kind.
func loadOVS(ctx context.Context, s *ovs.Switch, pods []lab.Pod, kind string) error {
	program, err := workload.ExampleProgram("two-nodes/node-a")
	if err != nil {
		return err
	}
	links := make(map[string]ovs.Port)
	for _, pod := range pods {
		links[pod.Name] = ovs.Port{Link: pod.Name, Kind: kind}
	}
	return s.Install(ctx, program, links)
}
