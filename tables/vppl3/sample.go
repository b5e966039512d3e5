package vppl3

import (
	"net/netip"

	"github.com/antrail/antrail/tables/layout"
)

// podMAC is the address that all pods have.
var podMAC = [6]byte{0, 0, 0, 0, 0, 2}

// sample is the Node of the document: a client behind port 7 and a server behind port 11. The
// client may reach only the server, and no pod may reach the client. The server is the endpoint
// of a Service.
func sample() *layout.Node {
	client, server := netip.MustParseAddr("10.1.1.12"), netip.MustParseAddr("10.1.1.9")
	const http = 8080
	return &layout.Node{
		PodCIDR:   netip.MustParsePrefix("10.1.1.0/24"),
		GatewayIP: netip.MustParseAddr("10.1.1.1"),
		Pods: []layout.Pod{
			{Port: layout.Port{Name: "tap11", No: 7, MAC: podMAC}, IPs: []netip.Addr{client}, Link: [6]byte{0x02, 0xfe, 0x69, 0x99, 0xeb, 0x9d}},
			{Port: layout.Port{Name: "tap8", No: 11, MAC: podMAC}, IPs: []netip.Addr{server}, Link: [6]byte{0x02, 0xfe, 0x16, 0x79, 0x39, 0xcb}},
		},
		Services: []layout.Service{{Proto: 6, Addr: netip.MustParseAddrPort("10.96.0.9:80"), Endpoint: netip.AddrPortFrom(server, http)}},
		Policies: []layout.Policy{
			{Pod: client, Ingress: &[]layout.Rule{}, Egress: &[]layout.Rule{{Proto: 6, Port: http, Other: netip.PrefixFrom(server, 32)}}},
			{Pod: server, Ingress: &[]layout.Rule{{Proto: 6, Port: http, Other: netip.PrefixFrom(client, 32)}}},
		},
	}
}
