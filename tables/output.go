package tables

import "github.com/antrail/antrail/flow"

// Output sends a packet as earlier tables decided: to a port, to the agent, back where it came
// from, or to an engine (TrafficControl, L7NetworkPolicy).
//
// L2ForwardingCalc has put the port into TargetOFPortField, so one entry sends to any port.
//
// Reads:  OutputRegField, TargetOFPortField, PktSourceField, TrafficControlActionField and
// -TargetOFPortField, HairpinCTMark, L7NPRedirectCTMark, PacketInOperationField; DSCP of
// Traceflows.
// Writes: the VLAN tag for the L7 engine.
// Next:   none. Table-miss: drop.

func toPortIn(f Field) flow.Action { return flow.OutputReg{Src: f.Subfield} }

func (p *Pipeline) outputPort() *flow.Entry {
	category := forPods
	if isExternal(p) {
		category = forExternal
	}
	return p.entry(category, tableOutput, priorityNormal,
		match(OutputToOFPortRegMark.Is()), toPortIn(TargetOFPortField))
}

func (p *Pipeline) outputHairpin() []*flow.Entry {
	if !hasProxy(p) {
		return nil
	}
	m := match(HairpinCTMark.Is())
	if isV2(p) {
		m = match(HairpinCTMark.Is(), OutputToOFPortRegMark.Is())
	}
	return []*flow.Entry{p.entry(forServices, tableOutput, priorityHigh, m, flow.OutputInPort{})}
}

// outputControlled mirrors or redirects.
func (p *Pipeline) outputControlled() []*flow.Entry {
	if !p.c.Features.TrafficControl {
		return nil
	}
	target := toPortIn(TrafficControlTargetOFPortField)
	return []*flow.Entry{
		p.entry(forPods, tableOutput, priorityHigh+1,
			match(OutputToOFPortRegMark.Is(), TrafficControlMirrorRegMark.Is()), toPortIn(TargetOFPortField), target),
		p.entry(forPods, tableOutput, priorityHigh+1,
			match(OutputToOFPortRegMark.Is(), TrafficControlRedirectRegMark.Is()), target),
	}
}

// etherTypeVLAN is an 802.1Q tag.
const etherTypeVLAN = 0x8100

// outputL7 sends a connection to the application-aware engine. The VLAN tag is the rule.
func (p *Pipeline) outputL7() *flow.Entry {
	m := match(OutputToOFPortRegMark.Is(), L7NPRedirectCTMark.Is())
	if isV2(p) { // replies come here before they have a port
		m = match(L7NPRedirectCTMark.Is())
	}
	return p.entry(forPolicies, tableOutput, priorityHigh+2, m,
		flow.PushVLAN{EtherType: etherTypeVLAN},
		flow.Move{Src: L7NPRuleVlanIDCTLabel.Subfield, Dst: flow.FieldByID(flow.VlanVID).Full()},
		flow.Output{Port: p.c.L7Target.No})
}

// outputL7Return sends packets from the engine to their port, and not to the engine again.
func (p *Pipeline) outputL7Return() *flow.Entry {
	return p.entry(forPolicies, tableOutput, priorityHigh+3, match(FromL7NPReturnRegMark.Is()), toPortIn(TargetOFPortField))
}

// outputToAgent sends packets that policies log, reject or record, with one entry for every
// combination of these three.
func (p *Pipeline) outputToAgent() (all []*flow.Entry) {
	for op := uint64(1); op <= PacketInLogging|PacketInReject|PacketInStoreDeny; op++ {
		all = append(all, p.entry(forPolicies, tableOutput, priorityNormal,
			match(OutputToControllerRegMark.Is(), PacketInOperationField.Is(op)),
			flow.MeterAction{ID: meterPolicy}, p.packetIn(PacketInNetworkPolicy, byte(op))))
	}
	return all
}

// outputTraced ends the way of a Traceflow's packet: it goes to the agent instead of a Pod, the
// Node or the outside. Packets to another Node leave, through the tunnel, or in noEncap mode by
// the gateway. They are not mirrored, but redirected to an engine.
func (p *Pipeline) outputTraced(f Family, tag uint8) []*flow.Entry {
	toAgent := []flow.Action{flow.MeterAction{ID: meterTraceflow}, p.packetIn(PacketInTraceflow)}
	traced := func(priority uint16, actions []flow.Action, more ...term) *flow.Entry {
		return p.entry(forTraceflow, tableOutput, priority, match(append(more, tagged(f, tag))...), actions...)
	}
	all := one(traced(priorityNormal+2, toAgent, OutputToControllerRegMark.Is())) // neither logged nor answered
	if hasProxy(p) {
		all = append(all, traced(priorityHigh+2, toAgent, HairpinCTMark.Is()))
	}
	way := p.c.Tunnel
	if !hasTunnel(p) {
		way = p.c.Gateway
	}
	toWay := TargetOFPortField.Is(uint64(way.No))
	ends := func(priority uint16, more ...term) {
		more = append(more, OutputToOFPortRegMark.Is())
		all = append(all, traced(priority, toAgent, more...), traced(priority+1, []flow.Action{toPortIn(TargetOFPortField)}, append(more, toWay)...))
		if ip := p.gatewayIP(f); ip.IsValid() && way == p.c.Gateway {
			all = append(all, traced(priority+2, toAgent, append(more, toWay, dst(ip))...))
		}
	}
	ends(priorityNormal + 2)
	if p.c.Features.TrafficControl {
		ends(priorityHigh+4, TrafficControlMirrorRegMark.Is())
	}
	return all
}
