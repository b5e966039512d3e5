package tables

import (
	"net/netip"
	"slices"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// SNAT translates the source of the connections that SNATMark has marked.
//
// It uses a zone of its own. A connection has one translation in a zone, and that
// of CtZone translates the destination. UnSNAT undoes this translation.
//
// Reads:  ct_state, ConnSNATCTMark, HairpinCTMark, PktSourceField.
// Writes: the source address, and the marks of SNATCtZone.
// Next:   switching, which is also the table-miss.

func (p *Pipeline) snat(f Family) (all []*flow.Entry) {
	if !hasProxy(p) {
		return nil
	}
	next := p.next(tableSNAT)
	marked := []Mark{ServiceCTMark}
	if isV2(p) {
		marked = append(marked, ConnSNATCTMark)
	}
	to := func(priority uint16, when []term, source netip.Addr, more ...Mark) {
		if !source.IsValid() {
			return
		}
		marks := slices.Concat(marked, more)
		ct := layout.Commit(f.snatZone(), next, setMarks(marks...)...)
		ct.NAT = snatTo(source)
		m := match(append(when, f.ip(), tracked(layout.CtNew, 0))...)
		all = append(all, p.entry(forServices, tableSNAT, priority, m, ct))
	}
	hairpin := HairpinCTMark.Is()
	to(priorityNormal, []term{hairpin, FromGatewayRegMark.Is()}, f.virtualServiceIP(), HairpinCTMark)
	to(priorityNormal, []term{hairpin, FromPodRegMark.Is()}, p.gatewayIP(f), HairpinCTMark)
	to(priorityLow, []term{ConnSNATCTMark.Is(), FromGatewayRegMark.Is()}, p.gatewayIP(f))
	return append(all, p.entry(forServices, tableSNAT, priorityNormal,
		match(f.ip(), tracked(0, layout.CtNew|layout.CtRpl), ConnSNATCTMark.Is()), layout.Restore(f.snatZone(), next)))
}

// snatAddresses are the addresses that replace sources.
func (p *Pipeline) snatAddresses(f Family) []netip.Addr {
	addrs := []netip.Addr{f.virtualServiceIP()}
	if ip := p.gatewayIP(f); ip.IsValid() {
		addrs = append(addrs, ip)
	}
	return addrs
}
