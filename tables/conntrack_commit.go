package tables

import (
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// ConntrackCommit commits new connections, with where they come from, but for
// those of Services, which EndpointDNAT has committed so.
//
// A connection exists once it is committed. What is dropped on its way here
// leaves none behind, unless a Service or a rule has committed it. A rule that
// allows has written its number into the connection; here the source is added.
//
// Reads:  ct_state, ServiceCTMark, PktSourceField.
// Writes: ConnSourceCTMarkField, through CtZone.
// Next:   output, which is also the table-miss.

func (p *Pipeline) commitNew(f Family) []*flow.Entry {
	return []*flow.Entry{p.entry(forPods, tableConntrackCommit, priorityNormal,
		match(f.ip(), tracked(layout.CtNew, ctSNAT), NotServiceCTMark.Is()),
		layout.Commit(f.zone(), p.next(tableConntrackCommit), keepSource()))}
}
