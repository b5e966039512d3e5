package tables

import (
	"net/netip"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// EgressMark chooses the address under which a packet leaves the cluster. If the
// address is on this Node, it marks the packet for the Node's own source
// translation. Otherwise it sends the packet through the tunnel to the Node that
// has the address. It exists with Egress.
//
// Reads:  the destination, in_port, tun_dst, ct_state, PktSourceField.
// Writes: pkt_mark, PktDestinationField, RemoteSNATRegMark, MAC addresses,
// tun_dst.
// Next:   EgressQoS, if it exists, for packets with an Egress address of this
// Node; otherwise switching. Table-miss: to the gateway, without an Egress.

// egressNever: packets to Nodes, Services and excepted ranges have no Egress.
func (p *Pipeline) egressNever(prefixes []netip.Prefix) (all []*flow.Entry) {
	if !hasEgress(p) {
		return nil
	}
	for _, cidr := range p.prefixesInFamilies(prefixes) {
		all = append(all, p.entry(forEgress, tableEgressMark, priorityHigh, match(dstIn(cidr)), p.toGateway()...))
	}
	return all
}

func hosts(addrs []netip.Addr) (prefixes []netip.Prefix) {
	for _, a := range addrs {
		prefixes = append(prefixes, host(a))
	}
	return prefixes
}

// egressHere: a Pod of this Node and an address of this Node. Every packet of the
// connection is marked.
func (p *Pipeline) egressHere(port Port, e EgressIP) *flow.Entry {
	return p.entry(forEgress, tableEgressMark, priorityNormal,
		match(familyOf(e.Addr).ip(), tracked(0, 0), inPort(port.No)), p.markEgress(e)...)
}

// egressElsewhere: a Pod of this Node and an address of another.
func (p *Pipeline) egressElsewhere(port Port, e EgressIP) *flow.Entry {
	return p.entry(forEgress, tableEgressMark, priorityNormal,
		match(familyOf(e.Addr).ip(), inPort(port.No)),
		layout.SetMAC(flow.EthSrc, p.c.Gateway.MAC), layout.SetMAC(flow.EthDst, GlobalVirtualMAC), setTunDst(e.Addr),
		ToTunnelRegMark.Set(), RemoteSNATRegMark.Set(), p.goStage(stageSwitching))
}

// egressFromTunnel: a Pod of another Node and an address of this one, the
// tunnel's destination.
func (p *Pipeline) egressFromTunnel(e EgressIP) *flow.Entry {
	return p.entry(forEgress, tableEgressMark, priorityNormal,
		match(familyOf(e.Addr).ip(), tracked(0, 0), tunDst(e.Addr)), p.markEgress(e)...)
}

func (p *Pipeline) markEgress(e EgressIP) []flow.Action {
	next := p.goStage(stageSwitching)
	if hasEgressQoS(p) {
		next = p.goTo(tableEgressQoS)
	}
	return []flow.Action{EgressMarkField.Set(uint64(e.Mark)), ToGatewayRegMark.Set(), next}
}

// egressUnknown drops connections from the tunnel for an address that this Node
// does not have.
func (p *Pipeline) egressUnknown(f Family) []*flow.Entry {
	if !hasEgress(p) || !hasTunnel(p) {
		return nil
	}
	return []*flow.Entry{p.entry(forEgress, tableEgressMark, priorityLow,
		match(f.ip(), tracked(layout.CtNew, 0), FromTunnelRegMark.Is()))}
}

func (p *Pipeline) egressDefault() []*flow.Entry {
	if !hasEgress(p) {
		return nil
	}
	return []*flow.Entry{p.entry(forEgress, tableEgressMark, priorityMiss, match(), p.toGateway()...)}
}
