package windows2020

import "github.com/antrail/antrail/tables/layout"

// Conntrack looks up a packet's connection and translates the packet as the connection does.
//
// A reply from the outside gets the pod's address back as its destination. Further packets from a
// pod get the Node's address as their source.
//
// Reads:  the connection.
// Writes: ct_state, ct_mark; addresses and ports of translated connections.
// Next:   ConntrackState. Table-miss: drop.

func conntrack() []layout.Entry {
	return []layout.Entry{literal("W-16", "nat: as the connection was translated when it was committed",
		layout.NewEntry(tableConntrack, priorityNormal, layout.Match(layout.IPv4), layout.Restore(ctZone, tableConntrackState)))}
}
