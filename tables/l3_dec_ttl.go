package tables

import "github.com/antrail/antrail/flow"

// L3DecTTL counts a hop, but not for packets from the gateway, which the Node
// has routed and counted.
//
// Reads:  PktSourceField.
// Writes: the TTL or hop limit.
// Next:   post-routing, which is also the table-miss.

func (p *Pipeline) decTTL(f Family) []*flow.Entry {
	next := p.goNext(tableL3DecTTL)
	return []*flow.Entry{
		p.entry(forPods, tableL3DecTTL, priorityHigh, match(f.ip(), FromGatewayRegMark.is()), next),
		p.entry(forPods, tableL3DecTTL, priorityNormal, match(f.ip()), flow.DecTTL{}, next),
	}
}
