package attack

import (
	"context"

	"github.com/antrail/antrail/agent/config"
)

// attack is a row of the table: the actions of one pod, and their expected effects.
type attack struct {
	name string
	// only restricts it to one family: "IPv4" or "IPv6".
	only string
	// play sends, and returns how many packets it has sent.
	play func(context.Context, *stage) (sent int, err error)
	// marker is in its packets and in no others, if they cannot have the stage's marker.
	marker []byte
	// arrives is how much of it may arrive at other pods.
	arrives arrival
	// cut says that the frames ask for segments as short as Linux itself sends. On AF_XDP
	// the pod's kernel cuts them, so they may arrive.
	cut bool
	// names are reasons, one of which `antrail drops` must give for a packet of
	// the attack: "ttl", or "entry/SpoofGuard" for an entry of a table.
	names []string
	// port is the port at which the drop must be named; "" is the attacker's.
	port string
	// check looks for damage that other pods' traffic does not show; nil for none.
	check func(context.Context, *stage) error
	// after removes what the attack leaves, so that the next one starts as this one did;
	// nil for nothing.
	after func(context.Context, *stage) error
}

// onDriver returns the attack with the expectations for a driver of pods' ports.
func (a attack) onDriver(driver string) attack {
	if a.cut && driver == config.DriverAFXDP {
		a.arrives, a.names = anything, nil
	}
	return a
}

// arrival is how much of an attack may arrive.
type arrival int

const (
	nothing    arrival = iota // no packet of it
	everything                // all of it: an honest row, which shows that arrivals are counted
	anything                  // allowed, and only bounded
)

// attacks are played in this order. The floods come last: what they leave may disturb the
// next attack.
var attacks = []attack{
	{name: "honest echo requests", play: honest, arrives: everything},

	// A datagram of an unprivileged process. The inner frame has the address of a pod that
	// a policy lets reach the database.
	{name: "tunnel packet to the other Node, as a pod here", play: inject(attacker, tunnelEnd(nodeB), injection{as: "web-a", to: "db-b"}), names: tunnelGuard, port: gatewayPort},
	{name: "tunnel packet to the other Node, as a pod there", play: inject(attacker, tunnelEnd(nodeB), injection{as: "web-b", to: "db-b"}), names: tunnelGuard, port: gatewayPort},
	{name: "tunnel packet to the own Node", play: inject(attacker, tunnelEnd(nodeA), injection{as: "web-b", to: "db-a"}), names: tunnelGuard, port: gatewayPort},
	{name: "tunnel packet to the own gateway", play: inject(attacker, nodeGateway, injection{as: "web-b", to: "db-a"}), names: tunnelGuard, port: gatewayPort},
	{name: "tunnel packet to the other Node's IPv6 address", only: "IPv6", play: inject(attacker, otherIPv6, injection{as: "web-a", to: "db-b"}), names: tunnelGuard, port: gatewayPort},
	{name: "tunnel packet by a user of node-b, as a pod here", play: inject(nodeB, tunnelEnd(nodeA), injection{as: "web-a", to: "db-a"}), names: innerGuard, port: tunnelPort},
	{name: "tunnel packet by a user of node-b, VNI 5", play: inject(nodeB, tunnelEnd(nodeA), injection{as: "web-b", to: "db-a", vni: 5}), names: networkGuard, port: tunnelPort},

	// Packets of connections that the kernel may forward.
	{name: "heard datagram by a user of its own Node", play: imitate(nodeB, 0, hearDatagram), arrives: everything, after: letGo},
	{name: "heard datagram by a host outside", only: "IPv4", play: imitate("outside", 0, hearDatagram), names: sourceGuard, port: tunnelPort, after: letGo},
	{name: "heard datagram by a user of its own Node, VNI 5", only: "IPv4", play: imitate(nodeB, 5, hearDatagram), names: networkGuard, port: tunnelPort, after: letGo},
	{name: "heard segment of pods here by a user of node-b", play: imitate(nodeB, 0, hearOnNode), names: innerGuard, port: tunnelPort},
	{name: "heard segment by a user of its own Node, as a RST", play: imitate(nodeB, 0, hearReset), names: []string{"entry/ConntrackState"}, port: tunnelPort},
	{name: "heard segment of other pods", play: imitateAsPod, names: foreignMAC},

	{name: "MAC of the gateway", play: hijackGateway, names: foreignMAC, check: wantOwnMACs},
	{name: "MAC of another pod", play: hijackPod, names: foreignMAC, check: wantOwnMACs},
	{name: "10,000 MACs", play: manyMACs, names: foreignMAC, check: wantOwnMACs},

	{name: "ARP: another's IP address", only: "IPv4", play: frames(forgedARP), names: []string{"entry/ARPSpoofGuard"}},
	{name: "ND: another's IP address", only: "IPv6", play: frames(forgedAdvert), names: []string{"entry/IPv6", "entry/SpoofGuard"}},
	{name: "ND: another's MAC", only: "IPv6", play: frames(forgedSolicit), names: []string{"entry/SpoofGuard", "entry/IPv6"}},
	{name: "ND: router advertisement", only: "IPv6", play: frames(routerAdvert), names: routerGuard},
	{name: "ND: redirect", only: "IPv6", play: frames(redirect), names: ndGuard},
	{name: "ND: in fragments", only: "IPv6", play: frames(fragmentedND), names: ndGuard},
	{name: "ND: hop limit 64", only: "IPv6", play: frames(nearND), names: ndGuard},

	{name: "UDP to ff02::1", only: "IPv6", play: frames(multicastUDP), names: multicastGuard},
	{name: "UDP to ff02::1, MAC of a pod", only: "IPv6", play: frames(unicastUDP), names: unicastGuard},
	{name: "TCP to ff02::1", only: "IPv6", play: frames(multicastTCP), names: multicastGuard},
	{name: "TCP to ff02::1, MAC of a pod", only: "IPv6", play: frames(unicastTCP), names: unicastGuard},

	{name: "loose source route", only: "IPv4", play: frames(sourceRoute(optionLoose)), names: routeGuard},
	{name: "strict source route", only: "IPv4", play: frames(sourceRoute(optionStrict)), names: routeGuard},
	{name: "routing header of type 0", only: "IPv6", play: frames(routingHeader), names: routeGuard},
	{name: "9 extension headers", only: "IPv6", play: frames(manyExtensions), names: extensionGuard},
	{name: "VLAN tag", play: frames(oneTag), names: vlanGuard},
	{name: "two VLAN tags", play: frames(twoTags), names: vlanGuard},
	{name: "TTL 0", play: frames(expired), names: []string{"ttl_zero"}},

	// Linux itself sends UDP in so many segments, and TCP in segments that short. They may
	// arrive, but they must not keep others from sending.
	{name: "GSO: TCP in segments of 8 bytes", play: lie(true, 8), marker: gsoMarker, cut: true, names: segmentGuard},
	{name: "GSO: TCP in segments of 48 bytes", play: lie(true, 48), arrives: anything},
	{name: "GSO: UDP in segments of 8 bytes", play: lie(false, 8), arrives: anything},
	{name: "GSO: UDP in segments of 48 bytes", play: lie(false, 48), arrives: anything},

	{name: "half requests to the page", only: "IPv4", play: halfRequests, arrives: anything, check: wantPage, after: letGo},
	{name: "half requests to the API", only: "IPv4", play: halfAPI, arrives: anything, check: wantAPI, after: letGo},
	{name: "answered UDP fills the connection table", play: fillConnections, arrives: anything, after: forgetConnections},

	{name: "flood: SYN", play: floodSYN, arrives: anything, after: forgetConnections},
	{name: "flood: one-sided UDP", play: floodOneSided, arrives: anything, after: forgetConnections},
	{name: "flood: answered UDP", play: floodAnswered, arrives: anything, after: forgetConnections},
	{name: "flood: fragments", play: floodFragments, arrives: anything, names: []string{"frag_full"}},
	{name: "flood: new flows to the other Node", play: floodFlows, arrives: anything, after: forgetConnections},
	{name: "flood: 64-byte frames", play: floodSmall, arrives: anything},
	{name: "flood: ARP", only: "IPv4", play: floodNeighbours, arrives: anything},
	{name: "flood: ND", only: "IPv6", play: floodNeighbours, arrives: anything},
	{name: "flood: rejected connections", play: floodPort(rejectedPort), arrives: anything, names: []string{"rejected", "meter"}, after: forgetConnections},
	{name: "flood: logged connections", play: floodPort(loggedPort), arrives: anything, names: []string{"dropped_and_logged", "meter"}, after: forgetConnections},
}

// Expected drop reasons; each row needs one of its list.
var (
	tunnelGuard    = []string{"port_packet_from_the_gateway_for_a_tunnel"}
	sourceGuard    = []string{"port_outer_source_is_not_a_known_node"}
	innerGuard     = []string{"port_inner_source_is_in_another_nodes_pod_range"}
	networkGuard   = []string{"port_the_tunnels_virtual_network_is_not_ours"}
	foreignMAC     = []string{"foreign_mac"}
	ndGuard        = []string{"nd_forbidden"}
	routerGuard    = []string{"nd_forbidden", "entry/IPv6"}
	multicastGuard = []string{"ipv6_multicast"}
	unicastGuard   = []string{"multicast_mac"}
	routeGuard     = []string{"source_route"}
	extensionGuard = []string{"ext_headers"}
	vlanGuard      = []string{"vlan_tag"}
	segmentGuard   = []string{"segments"}
)

// Ports of a Node: pods' packets to Nodes leave the switch by the first, and tunnel packets
// enter by the second.
const (
	gatewayPort = "antrea-gw0"
	tunnelPort  = "antrea-tun0"
)
