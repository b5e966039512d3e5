package tables

import (
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// ConntrackZone looks up every IP packet in conntrack and translates its addresses as its
// connection does.
//
// From here on ct_state relates the packet to its connection. +new begins one, +est belongs to
// one that was answered, +rpl goes against its first direction, +inv fits none. A zone is a
// separate table of connections. CtZone has them as Services and policies see them. SNATCtZone
// has those whose source SNAT has translated. IPv6 has one of each, too.
//
// With FlexibleIPAM, each VLAN has a zone of its own, in CtZoneField.
//
// Reads:  nothing; CtZoneField with FlexibleIPAM; with a policy of layer 7 in v2 PktSourceField,
// ct_state and L7NPRedirectCTMark.
// Writes: ct_state, ct_mark, ct_label and addresses, through CtZone.
// Next:   ConntrackState, which is also the table-miss. With a policy of layer 7 in v2, also
// output to its engine, and routing back from it.

func (p *Pipeline) trackConnections(f Family) []*flow.Entry {
	if isExternal(p) { // nothing is translated
		return one(p.entry(forExternal, tableConntrackZone, priorityNormal, match(f.ip()),
			&flow.CT{Zone: f.zone(), Table: p.next(tableConntrackZone)}))
	}
	return []*flow.Entry{p.entry(forPods, tableConntrackZone, priorityNormal,
		match(f.ip()), p.inZone(layout.Restore(f.zone(), p.next(tableConntrackZone))))}
}

// trackL7 shows a layer 7 engine both directions of a connection as the Pod of this Node sees
// them, in v2. A first ct() without translation finds the packet's connection. Requests have
// their destination translated before the engine, replies their source after it.
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
