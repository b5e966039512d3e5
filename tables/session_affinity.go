package tables

import "github.com/antrail/antrail/flow"

// SessionAffinity holds the entries that ServiceLB and DSRServiceMark learn:
// clients and the endpoint they stay at.
//
// A packet makes such an entry, not an object: the first connection of a client to a
// Service with affinity. It ends after the Service's time, used or not. What meets none
// is marked as one whose endpoint is still to be chosen, and ServiceLB chooses it.
//
// Reads:  as learned, the client and the Service's address and port.
// Writes: as learned, the endpoint in EndpointIPField (IPv6: EndpointIP6Field) and
// EpUnionField, with EpSelectedRegMark; by table-miss EpToSelectRegMark.
// Next:   returns to PreRoutingClassifier.

func (p *Pipeline) noAffinity() []*flow.Entry {
	if !hasProxy(p) {
		return nil
	}
	return []*flow.Entry{
		p.entry(forServices, tableSessionAffinity, priorityMiss, match(), EpToSelectRegMark.Set()),
	}
}
