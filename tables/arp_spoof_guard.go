package tables

import (
	"net/netip"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// ARPSpoofGuard lets a port speak in ARP only of its own address: the gateway
// and every Pod with an IPv4 address. Its twin for IPv6 is in table IPv6.
//
// ARP proves nothing: whoever answers a question is believed, and gets the packets. So
// the sender's addresses within the message are checked; the Ethernet header is only
// the envelope.
//
// With FlexibleIPAM, the Node's card and its own network speak for everybody behind them.
//
// Reads:  in_port, arp_spa, arp_sha.
// Writes: nothing.
// Next:   ARPResponder, or NORMAL from the card and the Node's own network. Table-miss: drop.

func (p *Pipeline) arpSender(port Port, addrs []netip.Addr) (all []*flow.Entry) {
	for _, a := range p.ours(addrs) {
		if familyOf(a) != IPv4 {
			continue
		}
		all = append(all, p.entry(forPods, tableARPSpoofGuard, priorityNormal,
			match(arp, inPort(port.No), arpAddr(flow.ArpSPA, a), layout.EthAddr(flow.ArpSHA, port.MAC)),
			p.goTo(tableARPResponder)))
	}
	return all
}

// arpOfUnderlay switches what the card and the Node's own network say.
func (p *Pipeline) arpOfUnderlay() (all []*flow.Entry) {
	for _, port := range []Port{p.c.Uplink, p.c.Bridge} {
		all = append(all, p.entry(forPods, tableARPSpoofGuard, priorityHigh, match(arp, inPort(port.No)), flow.Normal{}))
	}
	return all
}

// arpAddr asks for an address in arp_spa or arp_tpa.
func arpAddr(id flow.FieldID, a netip.Addr) term {
	return func(m *flow.Match) { m.AddExact(id, flow.ValueOfAddr(a)) }
}
