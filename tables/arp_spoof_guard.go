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
// Reads:  in_port, arp_spa, arp_sha.
// Writes: nothing.
// Next:   ARPResponder. Table-miss: drop.

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

// arpAddr asks for an address in arp_spa or arp_tpa.
func arpAddr(id flow.FieldID, a netip.Addr) term {
	return func(m *flow.Match) { m.AddExact(id, flow.ValueOfAddr(a)) }
}
