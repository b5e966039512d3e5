package tables

import (
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// Classifier marks a packet with its source, by its port.
//
// Later tables match the mark and not the port, because they treat all Pods alike.
//
// Reads:  in_port. From the gateway, also the source address. From the application-aware engine,
// also the VLAN tag. From the card, also the tag and eth_dst.
// Writes: PktSourceField; AntreaFlexibleIPAMRegMark and CtZoneField with FlexibleIPAM;
// FromLocalRegMark or FromExternalRegMark from Pods and the gateway. RewriteMACRegMark from the
// tunnel, whose MAC addresses are virtual, and from routed Pods; theirs also get the gateway's
// MAC address.
// Next:   SpoofGuard. Conntrack from the tunnel, where the peer has checked the source, and for
// Pods of the underlay. Output between the card and the Node. L3Forwarding from an engine of
// TrafficControl. From the engine of policies, L3Forwarding too, in v2 conntrack. Table-miss:
// drop.

// classifyGateway: packets with the gateway's own address are from the Node or its Pods. All
// others are from outside.
func (p *Pipeline) classifyGateway() []*flow.Entry {
	gateway := p.c.Gateway.No
	all := p.each(func(f Family) []*flow.Entry {
		ip := p.gatewayIP(f)
		if !ip.IsValid() {
			return nil
		}
		return []*flow.Entry{p.entry(forPods, tableClassifier, priorityHigh,
			match(inPort(gateway), src(ip)),
			FromGatewayRegMark.Set(), FromLocalRegMark.Set(), p.goStage(stageValidation))}
	})
	return append(all, p.entry(forPods, tableClassifier, priorityNormal, match(inPort(gateway)),
		FromGatewayRegMark.Set(), FromExternalRegMark.Set(), p.goStage(stageValidation)))
}

func (p *Pipeline) classifyTunnel() []*flow.Entry {
	if !hasTunnel(p) {
		return nil
	}
	return one(p.entry(forPods, tableClassifier, priorityNormal, match(inPort(p.c.Tunnel.No)),
		FromTunnelRegMark.Set(), RewriteMACRegMark.Set(), p.goStage(stageConntrackState)))
}

// classifyMulticastIn takes two kinds of packets past tables that do not concern them. Multicast
// from other Nodes skips connection tracking. Packets that the agent makes skip the checks of a
// port's addresses.
func (p *Pipeline) classifyMulticastIn() []*flow.Entry {
	if !hasTunnel(p) {
		return nil
	}
	return []*flow.Entry{
		p.entry(forMulticast, tableClassifier, priorityHigh, match(inPort(p.c.Tunnel.No), dstIn(ipv4Multicast)),
			FromTunnelRegMark.Set(), p.goStage(stageMulticastEgress)),
		p.entry(forMulticast, tableClassifier, priorityNormal, match(inPort(flow.PortController)), p.goTo(tablePipelineIPClassifier)),
	}
}

func (p *Pipeline) classifyPod(pod Pod) *flow.Entry {
	actions := setMarks(FromPodRegMark, FromLocalRegMark)
	if p.OnUnderlay(pod) {
		actions = append(actions, setMarks(AntreaFlexibleIPAMRegMark, RewriteMACRegMark)...)
	}
	return p.entry(forPods, tableClassifier, priorityLow, match(inPort(pod.Port.No)), append(actions, p.goStage(stageValidation))...)
}

// classifyRouted takes a packet from a Pod that sends everything to its router. From here on the
// packet looks as if it was sent to the gateway.
func (p *Pipeline) classifyRouted(pod Pod) *flow.Entry {
	actions := append(setMarks(FromPodRegMark, FromLocalRegMark, RewriteMACRegMark), layout.SetMAC(flow.EthDst, p.c.Gateway.MAC))
	return p.entry(forPods, tableClassifier, priorityLow, match(inPort(pod.Port.No), layout.EthAddr(flow.EthDst, layout.LinkMAC(pod.Port.No))),
		append(actions, p.goStage(stageValidation))...)
}

// classifyHost switches between the Node and its network.
func (p *Pipeline) classifyHost() []*flow.Entry {
	card, host := p.c.Uplink.No, p.c.Bridge.No
	return []*flow.Entry{
		p.entry(forPods, tableClassifier, priorityNormal, match(inPort(card)), flow.Output{Port: host}),
		p.entry(forPods, tableClassifier, priorityNormal, match(inPort(host)), flow.Output{Port: card}),
	}
}

// classifyUnderlay takes packets from the card or from the Node itself to a Pod of the underlay.
// The Node itself is in no VLAN.
func (p *Pipeline) classifyUnderlay(pod Pod) (all []*flow.Entry) {
	if !p.OnUnderlay(pod) {
		return nil
	}
	from := func(f Family, port Port, marks ...flow.Action) {
		all = append(all, p.entry(forPods, tableClassifier, priorityHigh,
			match(f.ip(), inPort(port.No), vlanIs(pod.VLAN), layout.EthAddr(flow.EthDst, pod.Port.MAC)),
			append(append(p.zoneOf(f), marks...), p.goStage(stageConntrackState))...))
	}
	for _, f := range p.families {
		from(f, p.c.Uplink, FromUplinkRegMark.Set(), VLANIDField.Set(uint64(pod.VLAN)))
		if pod.VLAN == 0 {
			from(f, p.c.Bridge, FromBridgeRegMark.Set())
		}
	}
	return all
}

// classifyReturn: packets back from a TrafficControl's engine have already passed the first half
// of the pipeline.
func (p *Pipeline) classifyReturn(port Port) *flow.Entry {
	return p.entry(forPods, tableClassifier, priorityNormal, match(inPort(port.No)),
		FromTCReturnRegMark.Set(), p.goStage(stageRouting))
}

// vlanPresent is the bit of vlan_tci that is set if there is a tag.
const vlanPresent = 0x1000

// classifyL7Return takes the rule's VLAN tag off.
func (p *Pipeline) classifyL7Return() *flow.Entry {
	from, next := FromTCReturnRegMark, stageRouting
	if isV2(p) {
		from, next = FromL7NPReturnRegMark, stageConntrackState
	}
	return p.entry(forPolicies, tableClassifier, priorityNormal, match(inPort(p.c.L7Return.No), anyVLAN),
		flow.PopVLAN{}, from.Set(), p.goStage(next))
}
