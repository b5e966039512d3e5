package demo

import (
	"net/netip"
	"slices"

	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
)

// Neighbour discovery (RFC 4861) is to IPv6 what ARP is to IPv4. An attacker can forge the
// target address, or the MAC in an option. A router advertisement makes its sender the
// router of all hosts. The genuine frame of a pair differs only in being about its sender.

var (
	allNodes    = layerAddr{[6]byte{0x33, 0x33, 0, 0, 0, 1}, netip.MustParseAddr("ff02::1")}
	unspecified = netip.IPv6Unspecified()
)

// forgedTarget advertises an address that is not the pod's.
func forgedTarget(a wire) spoof {
	return pairND(a, "IPv6", advertisement(a.client, a.stranger.ip, a.client.mac))
}

// forgedOption advertises the pod's address with another's MAC.
func forgedOption(a wire) spoof {
	return pairND(a, "IPv6", advertisement(a.client, a.client.ip, a.stranger.mac))
}

// forgedSolicit asks, with another's MAC as its own.
func forgedSolicit(a wire) spoof {
	return pairND(a, "IPv6", solicitation(a.client, a.web.ip, a.stranger.mac))
}

// router advertises the pod as a router. Port security drops that before table IPv6 does.
func router(a wire) spoof {
	return pairND(a, "nd_forbidden", discovery(a.client, packet.ICMPv6RouterAdvert, 64<<24|1800, make([]byte, 8)))
}

// pairND is a spoof of a forged message and the pod's own advertisement.
func pairND(a wire, counted string, forged []byte) spoof {
	return spoof{forged, advertisement(a.client, a.client.ip, a.client.mac), []string{counted}}
}

// detection asks for another's address as in duplicate address detection (RFC 4862, section
// 5.4). The owner would then give its address up. The genuine frame asks for the pod's own
// address.
func detection(a wire) spoof {
	nobody := layerAddr{a.client.mac, unspecified}
	return spoof{question(nobody, a.web.ip), question(nobody, a.client.ip), []string{"SpoofGuard"}}
}

// advertisement tells all nodes, unasked, which MAC has an address.
func advertisement(from layerAddr, target netip.Addr, mac [6]byte) []byte {
	const override = 1 << 29
	return discovery(from, packet.ICMPv6NeighborAdvert, override, target.AsSlice(), []byte{packet.NDOptionTargetLinkAddr, 1}, mac[:])
}

// solicitation asks all nodes for an address's MAC, with the asker's MAC in an option.
func solicitation(from layerAddr, target netip.Addr, mac [6]byte) []byte {
	return discovery(from, packet.ICMPv6NeighborSolicit, 0, target.AsSlice(), []byte{packet.NDOptionSourceLinkAddr, 1}, mac[:])
}

// question is a solicitation without an option.
func question(from layerAddr, target netip.Addr) []byte {
	return discovery(from, packet.ICMPv6NeighborSolicit, 0, target.AsSlice())
}

// discovery is a message to all nodes, with its second word and the rest. Neighbour
// discovery requires hop limit 255.
func discovery(from layerAddr, kind uint8, rest uint32, body ...[]byte) []byte {
	return packettest.ICMP6(packettest.Options{
		EthSrc: from.mac, EthDst: allNodes.mac, Src: from.ip, Dst: allNodes.ip, TTL: 255, Payload: slices.Concat(body...),
	}, kind, 0, rest)
}
