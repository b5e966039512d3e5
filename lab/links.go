package lab

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// bridgeName is the underlay's switch, in a namespace of its own.
const bridgeName = "br-underlay"

// eth0 is one end of a veth pair to be: the interface inside.
type eth0 struct {
	inside    Namespace
	outside   Namespace // where the other end goes
	far       string    // the other end's name
	mac       net.HardwareAddr
	mtu       int
	addresses []netip.Prefix
	gateways  []netip.Addr // default routes
	toBridge  bool         // the other end becomes a port of the underlay's bridge
	// offloads turns off what the other end cannot take from the inside; nil for
	// nothing.
	offloads func(ifname string) error
}

// connect makes the pair.
func (e *eth0) connect() error {
	if err := e.addPair(); err != nil {
		return fmt.Errorf("eth0 of %s: %w", e.inside, err)
	}
	if err := e.outside.Do(e.setUpFar); err != nil {
		return fmt.Errorf("%s in %s: %w", e.far, e.outside, err)
	}
	if err := e.inside.Do(e.setUpInside); err != nil {
		return fmt.Errorf("eth0 of %s: %w", e.inside, err)
	}
	return nil
}

func (e *eth0) addPair() error {
	far, err := netns.GetFromPath(e.outside.Path())
	if err != nil {
		return err
	}
	defer far.Close()
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU, attrs.HardwareAddr = "eth0", e.mtu, e.mac
	attrs.NumTxQueues, attrs.NumRxQueues = 1, 1
	return e.inside.Do(func() error {
		return netlink.LinkAdd(&netlink.Veth{
			LinkAttrs: attrs, PeerName: e.far, PeerMTU: uint32(e.mtu), PeerNamespace: netlink.NsFd(far),
		})
	})
}

func (e *eth0) setUpFar() error {
	if e.toBridge {
		link, err := netlink.LinkByName(e.far)
		if err != nil {
			return err
		}
		bridge, err := netlink.LinkByName(bridgeName)
		if err != nil {
			return err
		}
		if err := netlink.LinkSetMaster(link, bridge); err != nil {
			return err
		}
	}
	return setUp(e.far)
}

func (e *eth0) setUpInside() error {
	link, err := netlink.LinkByName("eth0")
	if err != nil {
		return err
	}
	if e.offloads != nil {
		if err := e.offloads("eth0"); err != nil {
			return err
		}
	}
	for _, a := range e.addresses {
		if err := addAddress(link, a); err != nil {
			return fmt.Errorf("address %s: %w", a, err)
		}
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return err
	}
	for _, g := range e.gateways {
		if err := netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Gw: g.AsSlice()}); err != nil {
			return fmt.Errorf("default route via %s: %w", g, err)
		}
	}
	return nil
}

// addAddress gives a link an address that is in use at once: nobody else in a lab
// has it.
func addAddress(link netlink.Link, a netip.Prefix) error {
	addr := &netlink.Addr{IPNet: &net.IPNet{IP: a.Addr().AsSlice(), Mask: net.CIDRMask(a.Bits(), a.Addr().BitLen())}}
	if a.Addr().Is6() {
		addr.Flags = unix.IFA_F_NODAD
	}
	return netlink.AddrAdd(link, addr)
}

// addRoute leads an address to a next hop behind a link.
func addRoute(name string, to, via netip.Addr) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	dst := &net.IPNet{IP: to.AsSlice(), Mask: net.CIDRMask(to.BitLen(), to.BitLen())}
	return netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: dst, Gw: via.AsSlice()})
}

// addBridge makes the underlay's switch in the calling thread's namespace.
func addBridge() error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = bridgeName
	if err := netlink.LinkAdd(&netlink.Bridge{LinkAttrs: attrs}); err != nil {
		return fmt.Errorf("bridge %s: %w", bridgeName, err)
	}
	return setUp(bridgeName)
}

func setUp(name string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(link)
}
