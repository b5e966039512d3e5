package vppl3

import "github.com/antrail/antrail/tables/layout"

// nat44-in2out gives replies of a Service's endpoint the Service's address, if the connection was
// translated.
//
// Reads:  the connection in zone 2.
// Writes: the source.
// Next:   nat44-in2out-slowpath. Table-miss: drop.

func in2Out() []layout.Entry {
	return []layout.Entry{entry("V-18", "as the connection was translated, if it was", tableIn2Out, priorityNormal,
		layout.Match(layout.IPv4), layout.Restore(natZone, tableSlowpath))}
}
