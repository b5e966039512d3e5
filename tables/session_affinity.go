package tables

import "github.com/antrail/antrail/flow"

// SessionAffinity holds the entries that ServiceLB and DSRServiceMark learn: clients with their
// endpoints.
//
// A packet makes these entries, not an object: the first connection of a client to a Service with
// affinity. An entry ends after the Service's time, used or not. The table-miss marks packets of
// other clients, and ServiceLB chooses their endpoint.
//
// Reads:  as learned, the client and the Service's address and port.
// Writes: as learned, the endpoint in EndpointIPField (IPv6: EndpointIP6Field) and EpUnionField,
// with EpSelectedRegMark; by table-miss EpToSelectRegMark.
// Next:   returns to PreRoutingClassifier.

func (p *Pipeline) noAffinity() []*flow.Entry {
	if !hasProxy(p) {
		return nil
	}
	return []*flow.Entry{
		p.entry(forServices, tableSessionAffinity, priorityMiss, match(), EpToSelectRegMark.Set()),
	}
}
