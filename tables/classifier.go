package tables

import "github.com/antrail/antrail/flow"

// Classifier notes where a packet comes from, by its port.
//
// Later tables mostly ask for the mark, not for the port: a Pod is a Pod to
// them, whichever it is.
//
// Reads:  in_port; for the gateway the source address, for packets back from
// the application-aware engine the VLAN tag.
// Writes: PktSourceField; FromLocalRegMark or FromExternalRegMark of what
// passes the validation; RewriteMACRegMark of what comes from the tunnel, whose
// MAC addresses are virtual.
// Next:   SpoofGuard; conntrack from the tunnel, where peers have checked;
// L3Forwarding for what TrafficControl gives back. What the engine of policies gives
// back goes to L3Forwarding too, in v2 to conntrack. Table-miss: drop.

// classifyGateway: what has the gateway's own address is from the Node or its
// Pods, all else has come from outside.
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

// classifyMulticastIn takes what other Nodes send to groups past the tables for connections,
// and what the agent makes past those that ask for a port's addresses.
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

func (p *Pipeline) classifyPod(port Port) *flow.Entry {
	return p.entry(forPods, tableClassifier, priorityLow, match(inPort(port.No)),
		FromPodRegMark.Set(), FromLocalRegMark.Set(), p.goStage(stageValidation))
}

// classifyReturn: packets that come back from a TrafficControl's engine have
// been through the first half of the pipeline already.
func (p *Pipeline) classifyReturn(port Port) *flow.Entry {
	return p.entry(forPods, tableClassifier, priorityNormal, match(inPort(port.No)),
		FromTCReturnRegMark.Set(), p.goStage(stageRouting))
}

// vlanPresent is the bit of vlan_tci that says that there is a tag.
const vlanPresent = 0x1000

// classifyL7Return takes the rule's VLAN tag off.
func (p *Pipeline) classifyL7Return() *flow.Entry {
	tagged := func(m *flow.Match) {
		m.Add(flow.VlanTCI, flow.Value{Lo: vlanPresent}, flow.Value{Lo: vlanPresent})
	}
	from, next := FromTCReturnRegMark, stageRouting
	if isV2(p) {
		from, next = FromL7NPReturnRegMark, stageConntrackState
	}
	return p.entry(forPolicies, tableClassifier, priorityNormal, match(inPort(p.c.L7Return.No), tagged),
		flow.PopVLAN{}, from.Set(), p.goStage(next))
}
