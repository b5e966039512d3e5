package tables

import (
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// ConntrackState sorts packets by their connection: an invalid one is dropped,
// one of a connection that exists needs no Service, a new one looks for one.
//
// So an endpoint is chosen once for a connection. Its later packets, in both
// directions, are translated in ConntrackZone as the first one was, and do not
// see the Service tables.
//
// An external Node has no Services: every packet that is valid goes on to its policies.
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

// stateOfDSR: the Node that spreads a DSR connection never sees the replies,
// so conntrack finds the packets invalid; DSRServiceMark decides on them.
func (p *Pipeline) stateOfDSR() []*flow.Entry {
	if !hasDSR(p) {
		return nil
	}
	return []*flow.Entry{p.entry(forServices, tableConntrackState, priorityHigh,
		match(tracked(layout.CtInv, 0), FromExternalRegMark.Is()), p.goStage(stagePreRouting))}
}

// stateOfTraced: a Traceflow's packet is looked at as one that begins a connection, also
// if it repeats an earlier one. What answers it goes nowhere.
func (p *Pipeline) stateOfTraced(f Family, tag uint8) []*flow.Entry {
	return []*flow.Entry{
		p.entry(forTraceflow, tableConntrackState, priorityLow+2, match(tagged(f, tag), tracked(layout.CtRpl, 0))),
		p.entry(forTraceflow, tableConntrackState, priorityLow+1, match(tagged(f, tag)), p.goStage(stagePreRouting)),
	}
}
