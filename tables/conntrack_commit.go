package tables

import "github.com/antrail/antrail/flow"

// ConntrackCommit commits new connections that no Service and no policy has
// committed, with where they come from.
//
// Reads:  ct_state, ServiceCTMark, PktSourceField.
// Writes: ConnSourceCTMarkField, through CtZone.
// Next:   output, which is also the table-miss.

func (p *Pipeline) commitNew(f Family) []*flow.Entry {
	return []*flow.Entry{p.entry(forPods, tableConntrackCommit, priorityNormal,
		match(f.ip(), tracked(ctNew, ctSNAT), NotServiceCTMark.is()),
		commit(f.zone(), p.next(tableConntrackCommit), keepSource()))}
}
