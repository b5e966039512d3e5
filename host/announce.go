package host

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/antrail/antrail/packet"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// When an Egress' address moves from Node to Node, the neighbours on the underlay still
// send to the previous Node. So the new Node announces the address once. In IPv4 that is an
// ARP request for its own address (RFC 5227, section 3), in IPv6 an unsolicited neighbour
// advertisement (RFC 4861, section 7.2.6). If the announcement gets lost, neighbours notice
// when their cache entry ends, so a loss is not an error.

var everyone = [6]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// announce announces an address to the neighbours of a link. A link without Ethernet
// addresses has no neighbours.
func announce(at netlink.Link, a netip.Addr) error {
	mac := at.Attrs().HardwareAddr
	if len(mac) != 6 {
		return nil
	}
	say := announce4
	if a.Is6() {
		say = announce6
	}
	if err := say(at.Attrs().Index, [6]byte(mac), a); err != nil && !errors.Is(err, unix.ENETDOWN) {
		return fmt.Errorf("announcing %s on %s: %w", a, at.Attrs().Name, err)
	}
	return nil
}

// announce4 sends the ARP request. The kernel adds the Ethernet header.
func announce4(link int, mac [6]byte, a netip.Addr) error {
	const wire = packet.EtherTypeARP>>8 | packet.EtherTypeARP&0xff<<8 // in network order
	s, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	arp := packet.ARP(make([]byte, packet.ARPLen))
	arp.Init()
	arp.SetOp(packet.ARPRequest)
	arp.SetSHA(mac)
	arp.SetSPA(a.As4())
	arp.SetTPA(a.As4())
	to := &unix.SockaddrLinklayer{Protocol: wire, Ifindex: link, Halen: 6}
	copy(to.Addr[:], everyone[:])
	return unix.Sendto(s, arp, 0, to)
}

// announce6 sends the advertisement to all nodes of the link. The kernel adds the IPv6
// header and the checksum.
func announce6(link int, mac [6]byte, a netip.Addr) error {
	s, err := unix.Socket(unix.AF_INET6, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_ICMPV6)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	const hops = 255 // RFC 4861, section 7.1.2: a lower one means that a router forwarded it
	err = errors.Join(
		unix.SetsockoptInt(s, unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_IF, link),
		unix.SetsockoptInt(s, unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_HOPS, hops),
		unix.Bind(s, &unix.SockaddrInet6{Addr: a.As16()}))
	if err != nil {
		return err
	}
	to := &unix.SockaddrInet6{ZoneId: uint32(link), Addr: [16]byte(net.IPv6linklocalallnodes)}
	return unix.Sendto(s, advertisement(mac, a), 0, to)
}

// advertisement is a neighbour advertisement that overrides cached entries (flag O).
func advertisement(mac [6]byte, a netip.Addr) []byte {
	const override, linkAddress = 1 << 29, 2
	b := make([]byte, packet.NDLen, packet.NDLen+8)
	icmp := packet.ICMP(b)
	icmp.SetType(packet.ICMPv6NeighborAdvert)
	icmp.SetRest(override)
	copy(packet.ND(b).Target(), a.AsSlice())
	return append(append(b, linkAddress, 1), mac[:]...)
}
