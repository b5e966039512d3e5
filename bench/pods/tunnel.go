package pods

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/bench/ovs"
	"github.com/antrail/antrail/bench/report"
	"github.com/antrail/antrail/bench/rig"
)

// tunnelNote says what the contenders are, and how datagrams are measured.
const tunnelNote = "Two pods on two Nodes, MTU 1450; the Nodes are namespaces with a veth each on a bridge, MTU 1500, which passes on checksums and segments that are left to a card. " +
	"antrail: two real agents, with the entries of examples/two-nodes, Geneve. Open vSwitch: two userspace datapaths with the very same entries, groups and meters, AF_PACKET ports, Geneve; without " +
	"userspace-tso-enable, which knows no tunnels, so that its pods cut segments themselves. UDP: one flow of datagrams of 64 bytes, of which at most 512 are under way."

// uplinkName is antrail with AF_XDP on the Nodes' uplinks, which forwards what the kernel
// otherwise does by itself. It takes part only if contenders are named.
const uplinkName = "AF_XDP uplink"

// openTunnels opens the contenders.
func openTunnels(ctx context.Context, r *rig.Rig, c *report.Comparison) (pairs []*pair, err error) {
	c.Notes = append(c.Notes, tunnelNote)
	dir, err := writeExamples()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) // the agents have read them when their lab is up
	openers := []opener{
		{vxlanName, openVXLAN},
		{routedName, openRouted},
		{ovs.Version(), func() (*pair, error) { return openOVSTunnel(ctx) }},
		{"antrail", func() (*pair, error) { return openTwoNodes(ctx, r, dir, "antrail", config.DriverKernel) }},
	}
	if len(r.Contenders) > 0 {
		openers = append(openers, opener{uplinkName, func() (*pair, error) { return openTwoNodes(ctx, r, dir, uplinkName, config.DriverAFXDP) }})
	}
	pairs, absent, err := openPairs(r, openers)
	c.Notes = append(c.Notes, absent...)
	noteIperf(r, c)
	if err != nil {
		return nil, errors.Join(err, closePairs(pairs))
	}
	return pairs, nil
}

// RunTunnel is profile tunnel: streams, round trips and datagrams between pods of two Nodes.
func RunTunnel(ctx context.Context, r *rig.Rig, c *report.Comparison) error {
	return runOpened(ctx, r, c, openTunnels, measureTunnel)
}

// measureTunnel measures streams, round trips and datagrams.
func measureTunnel(ctx context.Context, p *pair, window time.Duration) ([]rig.Reading, error) {
	all, err := measureBulk(ctx, p, window)
	if err != nil {
		return nil, fmt.Errorf("streams: %w", err)
	}
	trips, err := measureRR(ctx, p, window)
	if err != nil {
		return nil, fmt.Errorf("round trips: %w", err)
	}
	rate, each, err := p.measureDatagrams(ctx, window)
	if err != nil {
		return nil, fmt.Errorf("datagrams: %w", err)
	}
	return slices.Concat(all, trips, []rig.Reading{
		{Name: "UDP, 64 bytes", Unit: "Mpps", Value: rate}, {Name: "UDP, 64 bytes, processor time of a packet", Unit: "ns", Value: each},
	}), nil
}
