package layout

import (
	"net/netip"

	"github.com/antrail/antrail/flow"
)

// CardSample is a Node with two pods and another Node. The Node's card is a port. MAC addresses
// begin with oui. Addresses outside are for documentation (RFC 5737).
func CardSample(oui [3]byte) *Node {
	mac := func(kind, last byte) [6]byte { return [6]byte{oui[0], oui[1], oui[2], kind, 0, last} }
	pod := func(name string, no uint32, last byte) Pod {
		return Pod{
			Port: Port{Name: name, No: no, MAC: mac(0x0a, last)},
			IPs:  []netip.Addr{netip.AddrFrom4([4]byte{10, 10, 0, last})},
		}
	}
	return &Node{
		Uplink:    Port{Name: "uplink", No: 3, MAC: mac(0, 0x0a)},
		Bridge:    Port{Name: "br-int", No: flow.PortLocal, MAC: mac(0, 0x0a)}, // W-02: the uplink's address
		Gateway:   Port{Name: "antrea-gw0", No: 2, MAC: mac(0x0a, 0x01)},
		Tunnel:    Port{Name: "antrea-tun0", No: 1},
		NodeIP:    netip.MustParseAddr("192.0.2.10"),
		PodCIDR:   netip.MustParsePrefix("10.10.0.0/24"),
		GatewayIP: netip.MustParseAddr("10.10.0.1"),
		Pods:      []Pod{pod("pod-a", 4, 4), pod("pod-b", 5, 5)},
		Peers: []Peer{{
			NodeIPs:    []netip.Addr{netip.MustParseAddr("192.0.2.11")},
			PodCIDRs:   []netip.Prefix{netip.MustParsePrefix("10.10.1.0/24")},
			GatewayIPs: []netip.Addr{netip.MustParseAddr("10.10.1.1")},
		}},
		Services: []Service{{
			Proto: 6, Addr: netip.MustParseAddrPort("10.96.0.10:80"), Endpoint: netip.MustParseAddrPort("10.10.0.5:8080"),
		}},
	}
}
