package tables

import (
	"net/netip"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// ARPSpoofGuard lets the gateway and every Pod with an IPv4 address use only their own addresses
// in ARP. Table IPv6 does the same for IPv6.
//
// ARP has no proof: a host believes any answer and sends its packets there. So the sender's
// addresses inside the message are checked, not those of the Ethernet header.
//
// With FlexibleIPAM, the Node's card and its own network may use any address, because other hosts
// are behind them.
//
// Reads:  in_port, arp_spa, arp_sha.
// Writes: nothing.
// Next:   ARPResponder, or NORMAL from the card and the Node's own network. Table-miss: drop.

func (p *Pipeline) arpSender(port Port, addrs []netip.Addr) (all []*flow.Entry) {
	for _, a := range p.addrsInFamilies(addrs) {
		if familyOf(a) != IPv4 {
			continue
		}
		all = append(all, p.entry(forPods, tableARPSpoofGuard, priorityNormal,
			match(arp, inPort(port.No), arpAddr(flow.ArpSPA, a), layout.EthAddr(flow.ArpSHA, port.MAC)),
			p.goTo(tableARPResponder)))
	}
	return all
}

// arpOfUnderlay switches ARP from the card and the Node's own network.
func (p *Pipeline) arpOfUnderlay() (all []*flow.Entry) {
	for _, port := range []Port{p.c.Uplink, p.c.Bridge} {
		all = append(all, p.entry(forPods, tableARPSpoofGuard, priorityHigh, match(arp, inPort(port.No)), flow.Normal{}))
	}
	return all
}

// arpAddr matches an address in arp_spa or arp_tpa.
func arpAddr(id flow.FieldID, a netip.Addr) term {
	return func(m *flow.Match) { m.AddExact(id, flow.ValueOfAddr(a)) }
}
