package tables

import "github.com/antrail/antrail/flow"

// DNAT leaves Services to kube-proxy: it sends packets for Service addresses to
// the gateway. It exists when AntreaProxy is off.
//
// Reads:  the destination address.
// Writes: TargetOFPortField, OutputToOFPortRegMark.
// Next:   conntrack. Table-miss: the egress policies.

func (p *Pipeline) servicesToGateway() (all []*flow.Entry) {
	if hasProxy(p) {
		return nil
	}
	for _, cidr := range p.prefixesInFamilies(p.c.ServiceCIDRs) {
		all = append(all, p.entry(forServices, tableDNAT, priorityNormal, match(dstIn(cidr)),
			TargetOFPortField.Set(uint64(p.c.Gateway.No)), OutputToOFPortRegMark.Set(), p.goStage(stageConntrack)))
	}
	return all
}
