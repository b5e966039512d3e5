package tables

import "github.com/antrail/antrail/flow"

// NonIP passes between a card of an external Node and the machine itself what is not IPv4:
// ARP, IPv6 and anything else. It exists on external Nodes alone.
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
