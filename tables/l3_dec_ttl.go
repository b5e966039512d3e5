package tables

import "github.com/antrail/antrail/flow"

// L3DecTTL decrements the TTL, except of packets from the gateway: the Node has routed them and
// decremented it.
//
// A router decrements the TTL and drops a packet that has none left, so that no packet circles
// forever. Packets between Pods of one Node by their own addresses are not routed, and skip this
// table.
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
