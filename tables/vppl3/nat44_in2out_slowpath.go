package vppl3

import (
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// nat44-in2out-slowpath translates connections that an endpoint begins itself: it may use
// Services too.
//
// Reads:  the destination.
// Writes: the destination; a session in zone 2.
// Next:   ip4-lookup, which is also the table-miss.

func slowpath(n *layout.Node) []layout.Entry {
	return append(services(n, tableSlowpath),
		entry("V-18", "no Service's address: no session", tableSlowpath, priorityMiss, flow.Match{}, goTo(tableLookup)))
}
