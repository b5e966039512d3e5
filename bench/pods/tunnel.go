package pods

import (
	"context"
	"os"
	"time"

	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/bench/ovs"
	"github.com/antrail/antrail/bench/report"
	"github.com/antrail/antrail/bench/rig"
	"github.com/antrail/antrail/lab"
)

// tunnelNotes say what the contenders are, and how datagrams are measured.
var tunnelNotes = []string{
	"Two pods on two Nodes, MTU 1450. Each Node is a namespace with a veth on a bridge, MTU 1500. The bridge passes on checksums and segments that are left to a card.",
	"antrail: two real agents with the entries of examples/two-nodes, Geneve.",
	"Open vSwitch: two userspace datapaths with the same entries, groups and meters, AF_PACKET ports, Geneve. userspace-tso-enable does not work with tunnels, so it is off, and the pods cut segments themselves.",
	"UDP: one flow of datagrams of 64 bytes, with at most 512 under way.",
}

// These contenders take part only if they are named. The first offloads no connection to the kernel.
// The second has AF_XDP on the Nodes' uplinks, so it forwards what the kernel otherwise would.
const (
	withoutOffload = "without offload"
	uplinkName     = "AF_XDP uplink"
)

// openTunnels opens the contenders.
func openTunnels(ctx context.Context, r *rig.Rig, c *report.Comparison) (pairs []*pair, err error) {
	c.Notes = append(c.Notes, tunnelNotes...)
	dir, err := writeExamples()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) // the agents have read them when their lab is up
	twoNodes := func(name string, o lab.Options) opener {
		return opener{name, func() (*pair, error) { return openTwoNodes(ctx, r, dir, name, o) }}
	}
	openers := []opener{
		{vxlanName, openVXLAN},
		{routedName, openRouted},
		{ovs.Version(), func() (*pair, error) { return openOVSTunnel(ctx) }},
		twoNodes("antrail", lab.Options{TunnelDriver: config.DriverKernel}),
	}
	if len(r.Contenders) > 0 {
		openers = append(openers, twoNodes(withoutOffload, lab.Options{TunnelDriver: config.DriverKernel, Offload: config.OffloadOff}),
			twoNodes(uplinkName, lab.Options{TunnelDriver: config.DriverAFXDP}))
	}
	return openNoted(r, c, openers)
}

// RunTunnel is profile tunnel: streams, round trips, connections and datagrams between pods of two Nodes.
func RunTunnel(ctx context.Context, r *rig.Rig, c *report.Comparison) error {
	return runOpened(ctx, r, c, openTunnels, measureTunnel)
}

// measureTunnel measures streams, round trips, connections and datagrams.
func measureTunnel(ctx context.Context, p *pair, window time.Duration) ([]rig.Reading, error) {
	return measureEach(ctx, p, window, []measurePair{measureBulk, measureRR, measureConnect, measureUDP})
}
