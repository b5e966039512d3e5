package lab

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// bridgeName is the underlay's bridge, in a namespace of its own.
const bridgeName = "br-underlay"

// wire describes a veth pair: an interface inside, and its other end.
type wire struct {
	inside    Namespace
	name      string    // of the interface inside; "" is eth0
	outside   Namespace // of the other end
	far       string    // the other end's name
	mac       net.HardwareAddr
	mtu       int
	addresses []netip.Prefix
	gateways  []netip.Addr // default routes
	master    string       // the bridge or bond of the other end
	// offloads turns off the inside's offloads that the other end cannot take; nil turns
	// off nothing.
	offloads func(ifname string) error
}

// connect makes the pair and sets both ends up.
func (e *wire) connect() error {
	e.name = cmp.Or(e.name, "eth0")
	if err := e.addPair(); err != nil {
		return fmt.Errorf("%s of %s: %w", e.name, e.inside, err)
	}
	if err := e.outside.Do(e.setUpFar); err != nil {
		return fmt.Errorf("%s in %s: %w", e.far, e.outside, err)
	}
	if err := e.inside.Do(e.setUpInside); err != nil {
		return fmt.Errorf("%s of %s: %w", e.name, e.inside, err)
	}
	return nil
}

func (e *wire) addPair() error {
	far, err := netns.GetFromPath(e.outside.Path())
	if err != nil {
		return err
	}
	defer far.Close()
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU, attrs.HardwareAddr = e.name, e.mtu, e.mac
	attrs.NumTxQueues, attrs.NumRxQueues = 1, 1
	return e.inside.Do(func() error {
		return netlink.LinkAdd(&netlink.Veth{
			LinkAttrs: attrs, PeerName: e.far, PeerMTU: uint32(e.mtu), PeerNamespace: netlink.NsFd(far),
		})
	})
}

func (e *wire) setUpFar() error {
	if e.master != "" {
		if err := setMaster(e.far, e.master); err != nil {
			return err
		}
	}
	return setUp(e.far)
}

func (e *wire) setUpInside() error {
	if e.offloads != nil {
		if err := e.offloads(e.name); err != nil {
			return err
		}
	}
	return setUpLink(e.name, e.addresses, e.gateways)
}

// setUpLink gives a link its addresses, sets it up and makes default routes by it.
func setUpLink(name string, addresses []netip.Prefix, gateways []netip.Addr) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	for _, a := range addresses {
		if err := addAddress(link, a); err != nil {
			return fmt.Errorf("address %s: %w", a, err)
		}
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return err
	}
	for _, g := range gateways {
		if err := netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Gw: g.AsSlice()}); err != nil {
			return fmt.Errorf("default route via %s: %w", g, err)
		}
	}
	return nil
}

// addAddress adds an address that is in use at once: addresses in a lab are unique.
func addAddress(link netlink.Link, a netip.Prefix) error {
	addr := &netlink.Addr{IPNet: &net.IPNet{IP: a.Addr().AsSlice(), Mask: net.CIDRMask(a.Bits(), a.Addr().BitLen())}}
	if a.Addr().Is6() {
		addr.Flags = unix.IFA_F_NODAD
	}
	return netlink.AddrAdd(link, addr)
}

// addRoute adds a route to an address via a next hop on a link.
func addRoute(name string, to, via netip.Addr) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	dst := &net.IPNet{IP: to.AsSlice(), Mask: net.CIDRMask(to.BitLen(), to.BitLen())}
	return netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: dst, Gw: via.AsSlice()})
}

// addBridge makes the underlay's bridge in the calling thread's namespace.
func addBridge() error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = bridgeName
	if err := netlink.LinkAdd(&netlink.Bridge{LinkAttrs: attrs}); err != nil {
		return fmt.Errorf("bridge %s: %w", bridgeName, err)
	}
	return setUp(bridgeName)
}

// setMaster makes a link a port of a bridge or bond.
func setMaster(name, master string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	over, err := netlink.LinkByName(master)
	if err != nil {
		return err
	}
	return netlink.LinkSetMaster(link, over)
}

func setUp(name string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(link)
}
