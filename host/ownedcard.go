package host

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// A card that the switch owns. Packets of the Node's own network pass from the card through
// the switch to the bridge, a tap, and back. So the card's addresses and routes move to the
// bridge (movedcard.go). Without the switch the Node is offline, until the addresses are
// back on the card.
//
// What would not work on the bridge is refused before anything changes:
//
//	leases       a DHCP client renews an address on the card, and a router advertises routes there
//	uppers       a VLAN or the like on the card would get no packets; nor would a bond or bridge
//	             that the card is in
//	next hops    an object of `ip nexthop` belongs to the card, and other routes may use it

// OwnedCard is a card that is a port of the switch, and the bridge that gets its addresses.
type OwnedCard struct {
	Link, Bridge string
	MAC          [6]byte    // of both
	Addr         netip.Addr // the Node's, on the card
	First, Last  uint16     // ports of pods
}

// inspect reads the card's addresses and routes. The error says why the switch cannot own
// the card.
func (o *OwnedCard) inspect() (*movedCard, error) {
	card, err := netlink.LinkByName(o.Link)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.Link, err)
	}
	if err := o.check(card); err != nil {
		return nil, err
	}
	m := &movedCard{Link: o.Link, Bridge: o.Bridge, Index: card.Attrs().Index}
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		if err := errors.Join(m.addAddresses(family), m.addRoutes(family)); err != nil {
			return nil, fmt.Errorf("%s: %w", o.Link, err)
		}
	}
	if !slices.ContainsFunc(m.prefixes(), func(p netip.Prefix) bool { return p.Addr() == o.Addr }) {
		return nil, fmt.Errorf("%s does not have the Node's address %v", o.Link, o.Addr)
	}
	return m, checkPortRange(o.First, o.Last)
}

// check refuses a link whose packets would not reach the bridge.
func (o *OwnedCard) check(card netlink.Link) error {
	a := card.Attrs()
	if !bytes.Equal(a.HardwareAddr, o.MAC[:]) {
		return fmt.Errorf("%s has the MAC address %s, expected %s, that of the uplink port", o.Link, a.HardwareAddr, net.HardwareAddr(o.MAC[:]))
	}
	if a.MasterIndex != 0 {
		return fmt.Errorf("%s is a member of a bridge or bond (link %d): take it out, or own that link", o.Link, a.MasterIndex)
	}
	all, err := netlink.LinkList()
	if err != nil {
		return err
	}
	for _, other := range all {
		switch other.Type() {
		case "vlan", "macvlan", "macvtap", "ipvlan", "ipvtap":
			if other.Attrs().ParentIndex == a.Index {
				return fmt.Errorf("%s, a %s, is on %s and would get no packets: remove it", other.Attrs().Name, other.Type(), o.Link)
			}
		}
	}
	return nil
}

// addAddresses reads the addresses of the card.
func (m *movedCard) addAddresses(family int) error {
	all, err := dump(unix.RTM_GETADDR, unix.RTM_NEWADDR, family)
	if err != nil {
		return err
	}
	for _, body := range all {
		head, attributes, err := split(body, unix.SizeofIfAddrmsg)
		if err != nil {
			return err
		}
		if int(head[0]) != family || binary.NativeEndian.Uint32(head[4:]) != uint32(m.Index) {
			continue
		}
		p, err := addressOfMessage(body)
		if err != nil {
			return err
		}
		// struct ifa_cacheinfo: preferred and valid lifetime in seconds, and two time stamps.
		if times := valueOf(attributes, unix.IFA_CACHEINFO); len(times) >= 8 && number(times[4:8]) != math.MaxUint32 {
			return fmt.Errorf("the address %v is a lease, valid for %d seconds: its DHCP client would renew it on the card; configure the address by hand", p, number(times[4:8]))
		}
		m.Addresses = append(m.Addresses, message{"address " + p.String(), body})
	}
	return nil
}

// addRoutes reads the routes by the card, and others that have one of its addresses as
// source: the kernel flushes those with the address. It leaves out the kernel's own routes,
// which come with an address.
func (m *movedCard) addRoutes(family int) error {
	all, err := dump(unix.RTM_GETROUTE, unix.RTM_NEWROUTE, family)
	if err != nil {
		return err
	}
	for _, body := range all {
		head, attributes, err := split(body, unix.SizeofRtMsg)
		if err != nil {
			return err
		}
		byCard := uses(attributes, m.Index)
		if int(head[0]) != family || byCard && head[5] == unix.RTPROT_KERNEL || !byCard && !m.isSource(attributes) || head[4] == unix.RT_TABLE_LOCAL ||
			binary.NativeEndian.Uint32(head[8:])&unix.RTM_F_CLONED != 0 {
			continue
		}
		text := routeText(head, attributes)
		// struct rta_cacheinfo: two counts, then the time left.
		if times := valueOf(attributes, unix.RTA_CACHEINFO); len(times) >= 12 && number(times[8:12]) != 0 {
			return fmt.Errorf("the route %s has a lifetime from a router advertisement: configure it by hand", text)
		}
		if valueOf(attributes, rtaNextHopID) != nil {
			return fmt.Errorf("the route %s uses an object of `ip nexthop`: give the route a next hop of its own", text)
		}
		m.Routes = append(m.Routes, message{"route " + text, body})
	}
	return nil
}

// isSource says whether a route has an address of the card as source.
func (m *movedCard) isSource(route []attribute) bool {
	src, ok := netip.AddrFromSlice(valueOf(route, unix.RTA_PREFSRC))
	return ok && slices.ContainsFunc(m.prefixes(), func(p netip.Prefix) bool { return p.Addr() == src })
}
