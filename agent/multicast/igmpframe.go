package multicast

import (
	"net/netip"

	"github.com/antrail/antrail/packet"
)

// Addresses of group management (RFC 3376, sections 4.1.12 and 4.2.14).
var (
	allHosts   = netip.AddrFrom4([4]byte{224, 0, 0, 1})
	allRouters = netip.AddrFrom4([4]byte{224, 0, 0, 22}) // of IGMP version 3
)

// frame is an IGMP message from the gateway, to a group's Ethernet address (RFC 1112,
// section 6.4), with the router alert option (RFC 2113).
func frame(gateway netip.Addr, mac [6]byte, to netip.Addr, m packet.IGMP) []byte {
	const ipLen = packet.IPv4Len + len(routerAlert)
	b := make([]byte, packet.EthernetLen+ipLen, packet.EthernetLen+ipLen+len(m))
	src, dst := gateway.As4(), to.As4()
	copy(b, []byte{0x01, 0x00, 0x5e, dst[1] & 0x7f, dst[2], dst[3]})
	copy(b[6:], mac[:])
	b[12] = packet.EtherTypeIPv4 >> 8
	h := b[packet.EthernetLen:]
	total := ipLen + len(m)
	copy(h, []byte{byte(0x40 | ipLen/4), 0xc0, byte(total >> 8), byte(total), 0, 0, 0x40, 0, 1, packet.ProtoIGMP})
	copy(h[12:], src[:])
	copy(h[16:], dst[:])
	copy(h[packet.IPv4Len:], routerAlert)
	sum := ^packet.Sum(h, 0)
	h[10], h[11] = byte(sum>>8), byte(sum)
	return append(b, m...)
}

const routerAlert = "\x94\x04\x00\x00"
