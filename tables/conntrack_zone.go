package tables

import (
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// ConntrackZone looks every IP packet up in conntrack and translates it as its
// connection is.
//
// From here on ct_state tells what the packet is to its connection. +new begins
// one, +est belongs to one that was answered, +rpl goes against its first
// direction, +inv fits none. A zone is a table of connections of its own. CtZone
// has them as Services and policies see them, SNATCtZone those whose source SNAT
// has translated; IPv6 has one of each, too.
//
// With FlexibleIPAM, each VLAN has a zone of its own, in CtZoneField.
//
// Reads:  nothing; CtZoneField with FlexibleIPAM; with a policy of layer 7 in v2 PktSourceField, ct_state and
// L7NPRedirectCTMark.
// Writes: ct_state, ct_mark, ct_label and addresses, through CtZone.
// Next:   ConntrackState, which is also the table-miss; for a policy of layer 7 in v2,
// output to its engine and routing for what comes back.

func (p *Pipeline) track(f Family) []*flow.Entry {
	if isExternal(p) { // nothing is translated
		return one(p.entry(forExternal, tableConntrackZone, priorityNormal, match(f.ip()),
			&flow.CT{Zone: f.zone(), Table: p.next(tableConntrackZone)}))
	}
	return []*flow.Entry{p.entry(forPods, tableConntrackZone, priorityNormal,
		match(f.ip()), p.inZone(layout.Restore(f.zone(), p.next(tableConntrackZone))))}
}

// trackL7 keeps both directions of a connection as the Pod of this Node sees them while
// the engine of policies looks at them, in v2. A first ct() without translation tells
// which connection a packet is of. What goes to the engine has its destination translated
// before, and replies get their source back after.
func (p *Pipeline) trackL7(f Family) []*flow.Entry {
	at := func(priority uint16, action flow.Action, terms ...term) *flow.Entry {
		return p.entry(forPolicies, tableConntrackZone, priority, match(append(terms, f.ip())...), action)
	}
	routing := p.first(stageRouting)
	reply, request := tracked(layout.CtRpl, 0), tracked(0, layout.CtRpl)
	lookUp := p.entry(forPolicies, tableConntrackZone, priorityHigh+2, match(f.ip(), CtStateNotRestoredRegMark.Is()),
		CtStateRestoredRegMark.Set(), &flow.CT{Zone: f.zone(), Table: p.id(tableConntrackZone)})
	return []*flow.Entry{
		lookUp,
		at(priorityHigh+1, layout.Restore(f.zone(), routing), FromL7NPReturnRegMark.Is(), reply),
		at(priorityHigh+1, flow.GotoTable{Table: routing}, FromL7NPReturnRegMark.Is(), request),
		at(priorityHigh, p.goStage(stageOutput), L7NPRedirectCTMark.Is(), reply),
		at(priorityHigh, layout.Restore(f.zone(), p.next(tableConntrackZone)), L7NPRedirectCTMark.Is(), request),
	}
}
