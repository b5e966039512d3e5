package tables

import "github.com/antrail/antrail/flow"

// L3DecTTL counts a hop, but not for packets from the gateway, which the Node
// has routed and counted.
//
// A router takes 1 from the TTL, and drops what has none left: so a packet that is led
// in a circle comes to an end. What goes between Pods of one Node by their own addresses
// is not routed, and does not come here.
//
// Reads:  PktSourceField.
// Writes: the TTL or hop limit.
// Next:   post-routing, which is also the table-miss.

func (p *Pipeline) decTTL(f Family) []*flow.Entry {
	next := p.goNext(tableL3DecTTL)
	return []*flow.Entry{
		p.entry(forPods, tableL3DecTTL, priorityHigh, match(f.ip(), FromGatewayRegMark.Is()), next),
		p.entry(forPods, tableL3DecTTL, priorityNormal, match(f.ip()), flow.DecTTL{}, next),
	}
}
