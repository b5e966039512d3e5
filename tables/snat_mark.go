package tables

import (
	"net/netip"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// SNATMark marks Service connections for SNAT if their replies would otherwise miss this Node.
// They go from the gateway back out of it, from the gateway to another Node's endpoint, or from
// an endpoint to itself.
//
// Reads:  ct_state, PktSourceField, PktDestinationField, ToExternalAddressRegMark,
// DSRServiceRegMark, the addresses.
// Writes: ConnSNATCTMark, HairpinCTMark, in v2 the connection's source, through CtZone.
// Next:   SNAT, which is also the table-miss.

func (p *Pipeline) markGatewaySNAT(f Family) []*flow.Entry {
	if !hasProxy(p) {
		return nil
	}
	all := one(p.entry(forServices, tableSNATMark, priorityNormal,
		match(f.ip(), tracked(layout.CtNew, 0), FromGatewayRegMark.Is(), ToGatewayRegMark.Is()),
		p.commitSNAT(f, ConnSNATCTMark, HairpinCTMark)))
	if !hasTunnel(p) {
		return all
	}
	return append(all,
		p.entry(forServices, tableSNATMark, priorityNormal,
			match(f.ip(), tracked(layout.CtNew, 0), FromGatewayRegMark.Is(), ToTunnelRegMark.Is(),
				ToExternalAddressRegMark.Is(), NotDSRServiceRegMark.Is()),
			p.commitSNAT(f, ConnSNATCTMark)))
}

// markHairpin marks connections that an endpoint of this Node makes to itself through its
// Service.
func (p *Pipeline) markHairpin(endpoint netip.Addr) *flow.Entry {
	return p.entry(forServices, tableSNATMark, priorityLow,
		match(tracked(layout.CtNew, 0), src(endpoint), dst(endpoint)),
		p.commitSNAT(familyOf(endpoint), ConnSNATCTMark, HairpinCTMark))
}

func (p *Pipeline) commitSNAT(f Family, marks ...Mark) flow.Action {
	exec := setMarks(marks...)
	if isV2(p) {
		exec = append(exec, keepSource())
	}
	return p.inZone(layout.Commit(f.zone(), p.next(tableSNATMark), exec...))
}

// setMarks writes several marks.
func setMarks(marks ...Mark) (actions []flow.Action) {
	for _, k := range marks {
		actions = append(actions, k.Set())
	}
	return actions
}
