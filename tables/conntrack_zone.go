package tables

import "github.com/antrail/antrail/flow"

// ConntrackZone looks every IP packet up in conntrack and translates it as its
// connection is.
//
// Reads:  nothing.
// Writes: ct_state, ct_mark, ct_label and addresses, through CtZone.
// Next:   ConntrackState, which is also the table-miss.

func (p *Pipeline) track(f Family) []*flow.Entry {
	return []*flow.Entry{p.entry(forPods, tableConntrackZone, priorityNormal,
		match(f.ip()), restore(f.zone(), p.next(tableConntrackZone)))}
}
