package tables

import (
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// UnSNAT undoes SNAT for the replies of a Service's connection. Such replies go to an address
// that SNAT translates to.
//
// Only the translation knows the client's address. It is undone before ConntrackZone undoes the
// Service's, because it was made after it.
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
