package demo

import (
	"net"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

// Neighbour discovery (RFC 4861) is to IPv6 what ARP is to IPv4, and is forged
// likewise: by the address that an answer is about, or by the MAC that an option
// gives. A router advertisement makes its sender everybody's router. The genuine
// frame of a pair differs in nothing but that it is about its sender.

var (
	allNodes    = layerAddr{net.HardwareAddr{0x33, 0x33, 0, 0, 0, 1}, net.ParseIP("ff02::1")}
	unspecified = net.ParseIP("::")
)

// forgedTarget advertises an address that is not the pod's.
func forgedTarget(a wire) (spoof, error) {
	return pairND(a, "IPv6", advertisement(a.client, a.stranger.ip, a.client.mac))
}

// forgedOption advertises the pod's address with another's MAC.
func forgedOption(a wire) (spoof, error) {
	return pairND(a, "IPv6", advertisement(a.client, a.client.ip, a.stranger.mac))
}

// forgedSolicit asks, and says of itself that it has another's MAC.
func forgedSolicit(a wire) (spoof, error) {
	return pairND(a, "IPv6", solicitation(a.client, a.web.ip, a.stranger.mac))
}

// router says that the pod is a router. Port security drops that before table IPv6 does.
func router(a wire) (spoof, error) {
	return pairND(a, "nd_forbidden", icmp6{
		from: a.client, to: allNodes, kind: layers.ICMPv6TypeRouterAdvertisement,
		body: &layers.ICMPv6RouterAdvertisement{HopLimit: 64, RouterLifetime: 1800},
	})
}

// pairND makes a spoof of a forged message and the pod's own advertisement.
func pairND(a wire, counted string, forged icmp6) (spoof, error) {
	f, err := forged.frame()
	if err != nil {
		return spoof{}, err
	}
	genuine, err := advertisement(a.client, a.client.ip, a.client.mac).frame()
	return spoof{f, genuine, []string{counted}}, err
}

// detection asks, as a host does that has not got its address yet (RFC 4862,
// section 5.4): who has another's address? The answer would be that the address
// is taken, and its owner would give it up. The genuine one asks for the pod's
// own.
func detection(a wire) (spoof, error) {
	ask := func(target net.IP) ([]byte, error) {
		return solicitation(layerAddr{a.client.mac, unspecified}, target, nil).frame()
	}
	forged, err := ask(a.web.ip)
	if err != nil {
		return spoof{}, err
	}
	genuine, err := ask(a.client.ip)
	return spoof{forged, genuine, []string{"SpoofGuard"}}, err
}

// advertisement tells all nodes, unasked, who has an address.
func advertisement(from layerAddr, target net.IP, mac net.HardwareAddr) icmp6 {
	return icmp6{
		from: from, to: allNodes, kind: layers.ICMPv6TypeNeighborAdvertisement,
		body: &layers.ICMPv6NeighborAdvertisement{
			Flags: 0x20, TargetAddress: target, // Override
			Options: layers.ICMPv6Options{{Type: layers.ICMPv6OptTargetAddress, Data: mac}},
		},
	}
}

// solicitation asks all nodes who has an address; without a MAC it has no option.
func solicitation(from layerAddr, target net.IP, mac net.HardwareAddr) icmp6 {
	body := &layers.ICMPv6NeighborSolicitation{TargetAddress: target}
	if mac != nil {
		body.Options = layers.ICMPv6Options{{Type: layers.ICMPv6OptSourceAddress, Data: mac}}
	}
	return icmp6{from: from, to: allNodes, kind: layers.ICMPv6TypeNeighborSolicitation, body: body}
}

// icmp6 is an ICMPv6 message. Those of neighbour discovery have hop limit 255, and
// are not believed with any other.
type icmp6 struct {
	from, to layerAddr
	kind     uint8
	body     gopacket.SerializableLayer
	payload  string
}

func (m icmp6) frame() ([]byte, error) {
	ip := &layers.IPv6{Version: 6, HopLimit: 255, NextHeader: layers.IPProtocolICMPv6, SrcIP: m.from.ip, DstIP: m.to.ip}
	icmp := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(m.kind, 0)}
	if err := icmp.SetNetworkLayerForChecksum(ip); err != nil {
		return nil, err
	}
	return serialize(
		&layers.Ethernet{SrcMAC: m.from.mac, DstMAC: m.to.mac, EthernetType: layers.EthernetTypeIPv6},
		ip, icmp, m.body, gopacket.Payload(m.payload),
	)
}

func echoFrame6(from, to layerAddr) ([]byte, error) {
	return icmp6{
		from: from, to: to, kind: layers.ICMPv6TypeEchoRequest,
		body: &layers.ICMPv6Echo{Identifier: 0x5f00, SeqNumber: 1}, payload: "is this really my address?",
	}.frame()
}
