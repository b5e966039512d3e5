package tables

import "github.com/antrail/antrail/flow"

// NonIP passes all packets but IPv4 between a card of an external Node and the machine: ARP, IPv6
// and others. It exists only on external Nodes.
//
// No policy decides on these packets. Without their ARP and neighbour discovery, the machine
// would be offline.
//
// Reads:  in_port.
// Writes: nothing.
// Next:   none. Table-miss: drop.

func (p *Pipeline) passAcross(from, to Port) *flow.Entry {
	return p.entry(forExternal, tableNonIP, priorityNormal, match(inPort(from.No)), flow.Output{Port: to.No})
}
