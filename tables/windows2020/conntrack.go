package windows2020

import "github.com/antrail/antrail/tables/layout"

// Conntrack asks which connection a packet belongs to, and translates it as the connection is.
//
// Here an answer from the outside gets the pod's address back as its destination, and what a
// pod goes on to send gets the Node's address as its source.
//
// Reads:  the connection.
// Writes: ct_state, ct_mark; addresses and ports of translated connections.
// Next:   ConntrackState. Table-miss: drop.

func conntrack() []layout.Entry {
	return []layout.Entry{literal("W-16", "nat: as the connection was translated when it was committed",
		layout.NewEntry(tableConntrack, priorityNormal, layout.Match(layout.IPv4), layout.Restore(ctZone, tableConntrackState)))}
}
