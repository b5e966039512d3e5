package tables

import (
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// ConntrackState sorts packets by their connection. It drops invalid packets. Packets of an
// existing connection skip the Service tables; new connections enter them.
//
// So an endpoint is chosen once for a connection. ConntrackZone translates its later packets, in
// both directions, like the first one.
//
// An external Node has no Services: every valid packet goes on to its policies.
//
// Reads:  ct_state, ServiceCTMark; with DSR, FromExternalRegMark; DSCP of Traceflows.
// Writes: RewriteMACRegMark of Service connections.
// Next:   the egress policies, or pre-routing, which is also the table-miss.

func (p *Pipeline) stateOfConnections(f Family) []*flow.Entry {
	if isExternal(p) {
		return one(p.entry(forExternal, tableConntrackState, priorityHigh, match(f.ip(), tracked(layout.CtInv, 0))))
	}
	return []*flow.Entry{
		p.entry(forPods, tableConntrackState, priorityNormal, match(f.ip(), tracked(layout.CtInv, 0))),
		p.entry(forPods, tableConntrackState, priorityLow,
			match(f.ip(), tracked(0, layout.CtNew), NotServiceCTMark.Is()), p.goStage(stageEgressSecurity)),
	}
}

// stateOfNew is the table-miss, for the first packet of a connection.
func (p *Pipeline) stateOfNew() *flow.Entry {
	if isExternal(p) {
		return p.entry(forDefault, tableConntrackState, priorityMiss, match(), p.goNext(tableConntrackState))
	}
	return p.entry(forPods, tableConntrackState, priorityMiss, match(), p.goStage(stagePreRouting))
}

func (p *Pipeline) stateOfServices(f Family) []*flow.Entry {
	if !hasProxy(p) {
		return nil
	}
	return []*flow.Entry{p.entry(forServices, tableConntrackState, priorityLow,
		match(f.ip(), tracked(0, layout.CtNew), ServiceCTMark.Is()),
		RewriteMACRegMark.Set(), p.goStage(stageEgressSecurity))}
}

// stateOfDSR: the Node that spreads a DSR connection never sees the replies, so conntrack calls
// the packets invalid. DSRServiceMark decides on them.
func (p *Pipeline) stateOfDSR() []*flow.Entry {
	if !hasDSR(p) {
		return nil
	}
	return []*flow.Entry{p.entry(forServices, tableConntrackState, priorityHigh,
		match(tracked(layout.CtInv, 0), FromExternalRegMark.Is()), p.goStage(stagePreRouting))}
}

// stateOfTraced: a Traceflow's packet counts as the first of a connection, even if it repeats an
// earlier one. Replies to it are dropped.
func (p *Pipeline) stateOfTraced(f Family, tag uint8) []*flow.Entry {
	return []*flow.Entry{
		p.entry(forTraceflow, tableConntrackState, priorityLow+2, match(tagged(f, tag), tracked(layout.CtRpl, 0))),
		p.entry(forTraceflow, tableConntrackState, priorityLow+1, match(tagged(f, tag)), p.goStage(stagePreRouting)),
	}
}
