package uplink

import (
	"github.com/antrail/antrail/tables/layout"
)

// EndpointDNAT translates a ClusterIP to its endpoint, here to a single one.
//
// Reads:  ct_state, the destination.
// Writes: the destination; RewriteMACField, ServiceCTMarkField.
// Next:   EgressRule, or L3Forwarding if no pod has rules; it is also the table-miss.

func endpointDNAT(n *layout.Node) []layout.Entry {
	var all []layout.Entry
	for _, s := range n.Services {
		all = append(all, of("W-23", "the endpoint of "+s.Addr.String(), layout.NewEntry(tableEndpointDNAT, priorityNormal, layout.Match(layout.ToService(&s)),
			rewriteMACRegMark.Set(), layout.CommitDNAT(ctZone, checkedEgress(n), &s, serviceCTMark.Set()))))
	}
	return append(all, miss(tableEndpointDNAT, checkedEgress(n)))
}
