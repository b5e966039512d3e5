package tables

import "github.com/antrail/antrail/flow"

// NodePortMark marks packets to an address at which NodePorts are reached. It exists with
// proxyAll.
//
// A NodePort is a port at any address of the Node. It is also at a virtual address, to which the
// Node's kernel sends packets from outside. With the mark, ServiceLB needs one entry for a
// NodePort, however many addresses there are.
//
// Reads:  the destination address.
// Writes: ToNodePortAddressRegMark.
// Next:   returns to PreRoutingClassifier. Table-miss: SessionAffinity.

func (p *Pipeline) nodePortAddresses(f Family) (all []*flow.Entry) {
	if !hasProxyAll(p) {
		return nil
	}
	for _, a := range append(p.addrsInFamilies(p.c.NodePortAddresses), f.virtualNodePortIP()) {
		if familyOf(a) == f && !a.IsLoopback() {
			all = append(all, p.entry(forServices, tableNodePortMark, priorityNormal,
				match(dst(a)), ToNodePortAddressRegMark.Set()))
		}
	}
	return all
}
