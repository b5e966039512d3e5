package tables

import (
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// EgressSecurityClassifier takes the connections that a NodeConfig names past the egress policies
// of an external Node, so that no policy cuts an operator off. It exists only on external Nodes.
// IngressSecurityClassifier does the same for ingress policies.
//
// It matches only the first packet. Later ones pass as those of any connection do.
//
// Reads:  ct_state; addresses, protocols and ports.
// Writes: nothing.
// Next:   EgressMetric. Table-miss: the egress policies.

// bypasses are the entries of Config.Bypasses, for both directions.
func (p *Pipeline) bypasses() (all []*flow.Entry) {
	for _, b := range p.c.Bypasses {
		all = append(all, p.bypass(b))
	}
	return all
}

func (p *Pipeline) bypass(b Bypass) *flow.Entry {
	at, metric, peer := tableIngressSecurityClassifier, tableIngressMetric, srcIn(b.Peer)
	if b.Direction == Egress {
		at, metric, peer = tableEgressSecurityClassifier, tableEgressMetric, dstIn(b.Peer)
	}
	terms := []term{tracked(layout.CtNew, 0), peer}
	if b.Proto != 0 {
		terms = append(terms, familyOf(b.Peer.Addr()).proto(b.Proto))
	}
	if port := dstPortField(b.Proto); port != flow.FieldNone && b.Port != 0 {
		terms = append(terms, layout.Exact(port, uint64(b.Port)))
	}
	return p.entry(forExternal, at, priorityNormal, match(terms...), p.goTo(metric))
}
