package tables

import (
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// UnSNAT undoes the source translation of a Service's connection for the
// replies: those that come to an address which SNAT translates to.
//
// Such a reply is not addressed to the client, whom only the translation knows. It is
// undone here, before ConntrackZone undoes the Service's: the last one made is the
// first one undone.
//
// Reads:  the destination address.
// Writes: the destination, through SNATCtZone.
// Next:   ConntrackZone, which is also the table-miss.

func (p *Pipeline) unSNAT(f Family) (all []*flow.Entry) {
	if !hasProxy(p) {
		return nil
	}
	for _, a := range p.snatAddresses(f) {
		all = append(all, p.entry(forServices, tableUnSNAT, priorityNormal,
			match(dst(a)), layout.Restore(f.snatZone(), p.next(tableUnSNAT))))
	}
	return all
}
