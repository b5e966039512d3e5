package pods

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/bench/ovs"
	"github.com/antrail/antrail/bench/report"
	"github.com/antrail/antrail/bench/rig"
)

// gatewayNotes say what the contenders are.
var gatewayNotes = []string{
	"A pod on its Node, and a host outside: a namespace with a veth on the Node's underlay. The pod's MTU is 1450, the underlay's 1500. The underlay passes on checksums and segments that are left to a card.",
	"Out: the pod connects to the host, and the Node masquerades it. In: the host connects to a NodePort of the Node, which leads to a pod of this Node.",
	"Linux bridge: nftables translate in both directions.",
	"antrail: a real agent with the objects of examples/web-app, without their Egresses.",
	"Open vSwitch: the entries of examples/two-nodes, an internal port as gateway, and nftables that masquerade. It has no NodePort.",
}

// openGateways opens the contenders.
func openGateways(ctx context.Context, r *rig.Rig, c *report.Comparison) (pairs []*pair, err error) {
	c.Notes = append(c.Notes, gatewayNotes...)
	openers := []opener{
		{bridgeName, openBridgeGateway},
		{ovs.Version(), func() (*pair, error) { return openOVSGateway(ctx) }},
		{"antrail", func() (*pair, error) { return openLabGateway(ctx, r, "antrail", config.OffloadAuto) }},
	}
	if len(r.Contenders) > 0 {
		openers = append(openers, opener{withoutOffload, func() (*pair, error) { return openLabGateway(ctx, r, withoutOffload, config.OffloadOff) }})
	}
	return openNoted(r, c, openers)
}

// RunGateway is profile gateway: streams, round trips, connections and datagrams between a pod and a host
// outside the cluster, in both directions.
func RunGateway(ctx context.Context, r *rig.Rig, c *report.Comparison) error {
	return runOpened(ctx, r, c, openGateways, measureGateway)
}

// measureGateway measures both directions.
func measureGateway(ctx context.Context, p *pair, window time.Duration) ([]rig.Reading, error) {
	tcp := []measurePair{measureBulk, measureRR, measureConnect}
	all, err := measureDirection(ctx, "out", p, window, append(tcp, measureUDP))
	if err != nil || p.inward == nil {
		return all, err
	}
	in, err := measureDirection(ctx, "in", p.inward, window, tcp)
	return slices.Concat(all, in), err
}

// measureDirection measures one direction. The NodePort is one of TCP.
func measureDirection(ctx context.Context, name string, p *pair, window time.Duration, measures []measurePair) ([]rig.Reading, error) {
	all, err := measureEach(ctx, p, window, measures)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for i := range all {
		all[i].Name = name + ", " + all[i].Name
	}
	return all, nil
}
