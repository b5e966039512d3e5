package tables

import (
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// ConntrackCommit commits new connections with their source.
//
// A connection exists once it is committed. A packet dropped before this table leaves no
// connection behind, unless a Service or a rule has committed it. A rule that allows has written
// its number into the connection; this table adds the source.
//
// In v1.15, EndpointDNAT has already committed connections of Services with their source. In v2,
// this table does, unless SNATMark has.
//
// Reads:  ct_state, ServiceCTMark, in v2 ConnSNATCTMark, PktSourceField.
// Writes: ConnSourceCTMarkField, through CtZone.
// Next:   output, which is also the table-miss.

func (p *Pipeline) commitNew(f Family) []*flow.Entry {
	if isExternal(p) {
		return one(p.entry(forExternal, tableConntrackCommit, priorityNormal, match(f.ip(), tracked(layout.CtNew, 0)),
			&flow.CT{Commit: true, Zone: f.zone(), Table: p.next(tableConntrackCommit)}))
	}
	fresh := match(f.ip(), tracked(layout.CtNew, ctSNAT), NotServiceCTMark.Is())
	if isV2(p) {
		fresh = match(f.ip(), tracked(layout.CtNew, 0), NotConnSNATCTMark.Is())
	}
	return []*flow.Entry{p.entry(forPods, tableConntrackCommit, priorityNormal, fresh,
		p.inZone(layout.Commit(f.zone(), p.next(tableConntrackCommit), keepSource())))}
}
