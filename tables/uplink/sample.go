package uplink

import (
	"net/netip"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// sample is a Node with two pods and another Node, in loop mode. Addresses outside are for
// documentation (RFC 5737).
func sample() *layout.Node {
	uplinkMAC := [6]byte{0x02, 0x00, 0x5e, 0x00, 0x00, 0x0a}
	pod := func(name string, no uint32, last byte) layout.Pod {
		return layout.Pod{
			Port: layout.Port{Name: name, No: no, MAC: [6]byte{0x02, 0x00, 0x5e, 0x0a, 0x00, last}},
			IPs:  []netip.Addr{netip.AddrFrom4([4]byte{10, 10, 0, last})},
		}
	}
	return &layout.Node{
		Uplink:    layout.Port{Name: "uplink", No: 3, MAC: uplinkMAC},
		Bridge:    layout.Port{Name: "br-int", No: flow.PortLocal, MAC: uplinkMAC}, // W-02: the uplink's address
		Gateway:   layout.Port{Name: "antrea-gw0", No: 2, MAC: [6]byte{0x02, 0x00, 0x5e, 0x0a, 0x00, 0x01}},
		Tunnel:    layout.Port{Name: "antrea-tun0", No: 1},
		NodeIP:    netip.MustParseAddr("192.0.2.10"),
		PodCIDR:   netip.MustParsePrefix("10.10.0.0/24"),
		GatewayIP: netip.MustParseAddr("10.10.0.1"),
		Pods:      []layout.Pod{pod("pod-a", 4, 4), pod("pod-b", 5, 5)},
		Peers: []layout.Peer{{
			NodeIPs:    []netip.Addr{netip.MustParseAddr("192.0.2.11")},
			PodCIDRs:   []netip.Prefix{netip.MustParsePrefix("10.10.1.0/24")},
			GatewayIPs: []netip.Addr{netip.MustParseAddr("10.10.1.1")},
		}},
		Services: []layout.Service{{
			Proto: 6, Addr: netip.MustParseAddrPort("10.96.0.10:80"), Endpoint: netip.MustParseAddrPort("10.10.0.5:8080"),
		}},
	}
}
