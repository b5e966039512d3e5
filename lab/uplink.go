package lab

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/antrail/antrail/internal/sysctl"
	"github.com/antrail/antrail/ports"
	"github.com/vishvananda/netlink"
)

// Uplink is the kind of a Node's eth0, its link to the underlay. The link with the Node's
// addresses is always eth0. Links below it are port0 and port1.
type Uplink string

// Kinds of uplinks. They need the kernel's modules 8021q and bonding.
const (
	UplinkPlain  Uplink = "plain"        // a veth
	UplinkVLAN   Uplink = "vlan"         // a VLAN on a veth; the outside host has the same tag
	UplinkBond   Uplink = "bond"         // a bond of two links, one of them active
	UplinkLACP   Uplink = "lacp"         // a bond of two active links, by 802.3ad with the bridge's side
	UplinkTagged Uplink = "vlan-on-bond" // a VLAN on a bond
)

var uplinks = []Uplink{UplinkPlain, UplinkVLAN, UplinkBond, UplinkLACP, UplinkTagged}

// UplinkKinds are the names of the kinds, for errors and help.
const UplinkKinds = "plain, vlan, bond, lacp or vlan-on-bond"

// Known says whether there is such a kind. "" is plain.
func (u Uplink) Known() bool { return u == "" || slices.Contains(uplinks, u) }

// tag is the VLAN ID of tagged uplinks.
const tag = 77

func (u Uplink) tagged() bool { return u == UplinkVLAN || u == UplinkTagged }

// bond is the mode of a Node's bond, if it has one.
func (u Uplink) bond() (mode netlink.BondMode, is bool) {
	switch u {
	case UplinkBond, UplinkTagged:
		return netlink.BOND_MODE_ACTIVE_BACKUP, true
	case UplinkLACP:
		return netlink.BOND_MODE_802_3AD, true
	}
	return 0, false
}

// connectUplink makes eth0 of a host on the underlay, of the lab's kind. The outside host
// has no bond.
func (l *Lab) connectUplink(ns Namespace, name string, addresses []netip.Prefix, gateways []netip.Addr) error {
	u := l.State.Uplink
	mode, bonded := u.bond()
	if bonded && name != "outside" {
		if err := l.connectBond(ns, name, mode); err != nil {
			return err
		}
	} else if err := l.connectPort(ns, lowest(u, "port0"), name, bridgeName); err != nil {
		return err
	}
	err := ns.Do(func() error {
		if u.tagged() {
			if err := addVLAN(below(u, name), "eth0"); err != nil {
				return err
			}
		}
		if err := setUpLink("eth0", addresses, gateways); err != nil {
			return err
		}
		return running("eth0")
	})
	if err != nil {
		return fmt.Errorf("eth0 of %s: %w", ns, err)
	}
	return nil
}

// lowest is a link's name: eth0, or below if a VLAN on it is eth0.
func lowest(u Uplink, below string) string {
	if u.tagged() {
		return below
	}
	return "eth0"
}

// below is the link below a VLAN.
func below(u Uplink, host string) string {
	if _, bonded := u.bond(); bonded && host != "outside" {
		return "bond0"
	}
	return "port0"
}

// connectPort connects a link of a host with a link of the underlay.
func (l *Lab) connectPort(ns Namespace, port, far, master string) error {
	w := wire{
		inside: ns, name: port, outside: l.Underlay(), far: far, master: master, mtu: underlayMTU,
		offloads: ports.DisableTxChecksum, // a capture on the underlay shall see correct checksums
	}
	if l.State.UnderlayOffloads {
		w.offloads = nil
	}
	return w.connect()
}

// connectBond makes a bond of two ports. With LACP the other ends are a bond, too.
// Otherwise they are ports of the bridge, as if of two switches.
func (l *Lab) connectBond(ns Namespace, host string, mode netlink.BondMode) error {
	masters, fars := [2]string{bridgeName, bridgeName}, [2]string{host, host + "-1"}
	if mode == netlink.BOND_MODE_802_3AD {
		masters, fars = [2]string{}, [2]string{host + "-0", host + "-1"}
	}
	for i, port := range []string{"port0", "port1"} {
		if err := l.connectPort(ns, port, fars[i], masters[i]); err != nil {
			return err
		}
	}
	name := lowest(l.State.Uplink, "bond0")
	if err := ns.Do(func() error { return addBond(name, mode, "port0", "port1") }); err != nil {
		return fmt.Errorf("%s of %s: %w", name, ns, err)
	}
	if mode != netlink.BOND_MODE_802_3AD {
		return nil
	}
	return l.Underlay().Do(func() error {
		if err := addBond(host, mode, fars[:]...); err != nil {
			return fmt.Errorf("%s in %s: %w", host, l.Underlay(), err)
		}
		return setMaster(host, bridgeName)
	})
}

// addBond makes a bond of links in the calling thread's namespace, and sets it up. The members
// have no IPv6. Otherwise the kernel would report each member's multicast groups from the
// bond's address. The bridge would then send the bond's packets to an inactive member.
func addBond(name string, mode netlink.BondMode, members ...string) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = name, underlayMTU
	bond := netlink.NewLinkBond(attrs)
	bond.Mode, bond.Miimon = mode, 50
	if mode == netlink.BOND_MODE_802_3AD {
		bond.LacpRate = netlink.BOND_LACP_RATE_FAST
	}
	if err := netlink.LinkAdd(bond); err != nil {
		return fmt.Errorf("bond: %w", err)
	}
	for _, m := range members {
		link, err := netlink.LinkByName(m)
		if err == nil {
			err = sysctl.Write(sysctl.Root+"net/ipv6/conf/"+m+"/disable_ipv6", "1")
		}
		if err == nil {
			err = netlink.LinkSetDown(link) // a bond takes only links that are down
		}
		if err == nil {
			err = setMaster(m, name)
		}
		if err != nil {
			return fmt.Errorf("member %s: %w", m, err)
		}
	}
	return setUp(name)
}

// addVLAN makes a VLAN on a link of the calling thread's namespace.
func addVLAN(on, name string) error {
	parent, err := netlink.LinkByName(on)
	if err != nil {
		return err
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.ParentIndex = name, parent.Attrs().Index
	if err := netlink.LinkAdd(&netlink.Vlan{LinkAttrs: attrs, VlanId: tag, VlanProtocol: netlink.VLAN_PROTOCOL_8021Q}); err != nil {
		return fmt.Errorf("VLAN: %w", err)
	}
	return nil
}

// running waits until a link has a carrier. LACP takes a while.
func running(name string) error {
	for end := time.Now().Add(startTime); ; time.Sleep(20 * time.Millisecond) {
		link, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		if link.Attrs().OperState == netlink.OperUp {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("no carrier: %s", strings.ToLower(link.Attrs().OperState.String()))
		}
	}
}
