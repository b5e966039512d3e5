package tables

import "github.com/antrail/antrail/flow"

// NodePortMark marks packets to an address at which NodePorts are reached. It
// exists with proxyAll.
//
// Reads:  the destination address.
// Writes: ToNodePortAddressRegMark.
// Next:   returns to PreRoutingClassifier. Table-miss: SessionAffinity.

func (p *Pipeline) nodePortAddresses(f Family) (all []*flow.Entry) {
	if !hasProxyAll(p) {
		return nil
	}
	for _, a := range append(p.ours(p.c.NodePortAddresses), f.virtualNodePortIP()) {
		if familyOf(a) == f && !a.IsLoopback() {
			all = append(all, p.entry(forServices, tableNodePortMark, priorityNormal,
				match(dst(a)), ToNodePortAddressRegMark.set()))
		}
	}
	return all
}
