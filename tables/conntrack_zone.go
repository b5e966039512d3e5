package tables

import (
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// ConntrackZone looks every IP packet up in conntrack and translates it as its
// connection is.
//
// From here on ct_state tells what the packet is to its connection. +new begins
// one, +est belongs to one that was answered, +rpl goes against its first
// direction, +inv fits none. A zone is a table of connections of its own. CtZone
// has them as Services and policies see them, SNATCtZone those whose source SNAT
// has translated; IPv6 has one of each, too.
//
// Reads:  nothing.
// Writes: ct_state, ct_mark, ct_label and addresses, through CtZone.
// Next:   ConntrackState, which is also the table-miss.

func (p *Pipeline) track(f Family) []*flow.Entry {
	return []*flow.Entry{p.entry(forPods, tableConntrackZone, priorityNormal,
		match(f.ip()), layout.Restore(f.zone(), p.next(tableConntrackZone)))}
}
