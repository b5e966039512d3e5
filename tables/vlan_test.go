package tables

import (
	"net/netip"
	"testing"
)

// underlayConfig is a Node with FlexibleIPAM: eth0 is its card, and br-int leads to its own
// network.
func underlayConfig() Config {
	c := goldenConfig()
	c.Release, c.Encap, c.Tunnel = V2, NoEncap, Port{}
	c.Features = Features{Proxy: true, AntreaPolicy: true, FlexibleIPAM: true}
	c.Uplink = Port{Name: "eth0", No: 40, MAC: mac("0a:00:00:00:00:02")}
	c.Bridge = Port{Name: "br-int", No: 41, MAC: mac("0a:00:00:00:00:02")}
	c.CookieRound = 0
	return c
}

// TestFlexibleIPAM makes the entries of a Node with a Pod of its own range, one of the underlay
// and one of the underlay's VLAN 2. testdata/flexible-ipam.diff has the differences from those
// without FlexibleIPAM.
func TestFlexibleIPAM(t *testing.T) {
	pods := []Pod{
		{Port: web, IPs: []netip.Addr{netip.MustParseAddr("10.10.0.24")}},
		{Port: client, IPs: []netip.Addr{netip.MustParseAddr("192.168.77.50")}},
		{Port: db, IPs: []netip.Addr{netip.MustParseAddr("192.168.77.51")}, VLAN: 2},
	}
	entries := func(c Config) []string {
		p := New(c)
		all := p.Static()
		for _, pod := range pods {
			all = append(all, p.Pod(pod)...)
		}
		all = append(all, p.Peer(Peer{
			NodeIPs: families{IPv4}.ips("192.168.77.103"), PodCIDRs: families{IPv4}.prefixes("10.10.1.0/24"),
			GatewayIPs: families{IPv4}.ips("10.10.1.1"),
		})...)
		all = append(all, p.Endpoint(Endpoint{Proto: 6, Addr: netip.MustParseAddrPort("192.168.77.50:80"), Local: true})...)
		all = append(all, p.RuleActions(Rule{ID: 7, Direction: Ingress, Action: Allow})...)
		names := p.Names()
		for _, port := range []Port{gateway, c.Uplink, c.Bridge, web, client, db} {
			names.SetPort(port.No, port.Name)
		}
		return lines(t, all, names)
	}
	without := underlayConfig()
	without.Features.FlexibleIPAM = false
	compareText(t, "flexible-ipam.diff", differences(entries(without), entries(underlayConfig())))
}
