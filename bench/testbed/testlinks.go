package testbed

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
)

// AddVXLAN makes the link "vxlan" in the calling thread's namespace. Its tunnel leads from one Node's
// address to that of another.
func AddVXLAN(local, remote netip.Addr) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = "vxlan", PodMTU
	return netlink.LinkAdd(&netlink.Vxlan{LinkAttrs: attrs, VxlanId: 1, SrcAddr: local.AsSlice(), Group: remote.AsSlice(), Port: 4789, Learning: true})
}

// AddRoute adds a route to a prefix, in CIDR notation, by a gateway.
func AddRoute(prefix string, via netip.Addr) error {
	_, dst, err := net.ParseCIDR(prefix)
	if err != nil {
		return err
	}
	return netlink.RouteAdd(&netlink.Route{Dst: dst, Gw: via.AsSlice()})
}

// SetLinkAddress adds an address, in CIDR notation, to a link of the calling thread's namespace and sets
// the link up.
func SetLinkAddress(name, address string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	a, err := netlink.ParseAddr(address)
	if err != nil {
		return err
	}
	return errors.Join(netlink.AddrAdd(link, a), netlink.LinkSetUp(link))
}

// SetLinkUp sets a link of the calling thread's namespace up.
func SetLinkUp(name string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(link)
}

// bridgeLink is the name of a Node's bridge.
const bridgeLink = "bridge"

// AddBridge makes a Linux bridge in the calling thread's namespace and sets it up.
func AddBridge(mtu int) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = bridgeLink, mtu
	if err := netlink.LinkAdd(&netlink.Bridge{LinkAttrs: attrs, MulticastSnooping: new(false)}); err != nil {
		return err
	}
	return SetLinkUp(bridgeLink)
}

// AddToBridge makes a link a port of the namespace's bridge.
func AddToBridge(name string) error {
	bridge, err := netlink.LinkByName(bridgeLink)
	if err != nil {
		return err
	}
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	return netlink.LinkSetMaster(link, bridge)
}

// turnOnGRO turns GRO on at links. A veth takes the generator's frames only if its other end has a
// NAPI instance. GRO or an XDP program gives it one.
func turnOnGRO(links ...string) error {
	e, err := ethtool.NewEthtool()
	if err != nil {
		return err
	}
	defer e.Close()
	for _, link := range links {
		if err := e.Change(link, map[string]bool{"rx-gro": true}); err != nil {
			return fmt.Errorf("GRO of %s: %w", link, err)
		}
	}
	return nil
}

// AddVethPair makes a veth pair with one queue each way, and sets both ends up.
func AddVethPair(a, b string) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.NumTxQueues, attrs.NumRxQueues = a, 1, 1
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: b}); err != nil {
		return err
	}
	for _, name := range []string{a, b} {
		link, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		if err := netlink.LinkSetUp(link); err != nil {
			return err
		}
	}
	return nil
}
