package uplink

import "github.com/antrail/antrail/tables/layout"

// ConntrackZone asks which connection a packet belongs to, and translates it as the connection is.
//
// An answer from the outside gets the pod's address back as its destination. What a pod goes
// on to send gets the Node's address as its source.
//
// Reads:  the connection.
// Writes: ct_state, ct_mark; addresses and ports of translated connections.
// Next:   ConntrackState. Table-miss: drop.

func conntrackZone() []layout.Entry {
	return []layout.Entry{of("W-16", "nat: as the connection was translated when it was committed",
		layout.NewEntry(tableConntrackZone, priorityNormal, layout.Match(layout.IPv4), layout.Restore(ctZone, tableConntrackState)))}
}
