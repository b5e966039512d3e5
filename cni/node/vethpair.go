package node

import (
	"errors"
	"fmt"
	"math"
	"net"

	"github.com/antrail/antrail/cni"
	"github.com/antrail/antrail/internal/nsthread"
	"github.com/antrail/antrail/internal/sysctl"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// The link of an attachment is a veth pair. The Node's end is the switch's port; the other
// end is the sandbox's interface.

// makeLink makes the pair, with the Node's end down. If the Node already has a link of that
// name, it is this attachment's, from a lost record: the name depends on nothing else.
// makeLink replaces it.
func (n *Node) makeLink(a *attachment, s *sandbox) error {
	if err := n.removeLink(a.Link); err != nil {
		return err
	}
	if _, err := s.links.LinkByName(a.Interface); err == nil {
		return types.NewError(cni.CodeNameTaken, "the sandbox already has an interface "+a.Interface+"", "")
	}
	mac, err := net.ParseMAC(a.MAC)
	if err != nil {
		return err
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = a.Link, n.MTU
	attrs.NumTxQueues, attrs.NumRxQueues = 1, 1
	if a.Routed {
		link := n.LinkMAC(a.OFPort)
		attrs.HardwareAddr = link[:]
	}
	err = n.home.links.LinkAdd(&netlink.Veth{
		LinkAttrs: attrs, PeerName: a.Interface, PeerMTU: uint32(n.MTU), PeerHardwareAddr: mac, PeerNamespace: netlink.NsFd(s.ns),
	})
	if err != nil {
		return fmt.Errorf("veth %s: %w", a.Link, err)
	}
	return nil
}

// removeLink removes the Node's end, and so the pair. If the link is gone, that is not
// an error. A link that is not a veth is an error.
func (n *Node) removeLink(name string) error {
	link, err := n.home.links.LinkByName(name)
	if noLink(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if link.Type() != "veth" {
		return fmt.Errorf("link %s is a %s, not a veth, so it is not a pod's", name, link.Type())
	}
	if err := n.home.links.LinkDel(link); err != nil && !noLink(err) {
		return fmt.Errorf("link %s: %w", name, err)
	}
	return nil
}

// noLink says whether an error means that a link does not exist.
func noLink(err error) bool {
	return errors.As(err, new(netlink.LinkNotFoundError)) || errors.Is(err, unix.ENODEV)
}

// setUp prepares both ends to carry packets. The Node's end has no address, not even a
// link-local one, so that the Node reaches the Pod only through the switch.
func (n *Node) setUp(a *attachment, s *sandbox) error {
	far, err := n.home.links.LinkByName(a.Link)
	if err != nil {
		return err
	}
	near, err := s.links.LinkByName(a.Interface)
	if err != nil {
		return err
	}
	// The Pod's link-local address follows from the MAC address (EUI-64), because table
	// SpoofGuard allows only that one.
	for _, mode := range []error{
		n.home.links.LinkSetIP6AddrGenMode(far, genModeNone), s.links.LinkSetIP6AddrGenMode(near, genModeEUI64),
	} {
		if mode != nil && !errors.Is(mode, unix.EAFNOSUPPORT) && !errors.Is(mode, unix.EOPNOTSUPP) {
			return fmt.Errorf("addr_gen_mode of %s: %w", a.Link, mode)
		}
	}
	if err := nsthread.In(s.ns, func() error { return n.prepare(a) }); err != nil {
		return err
	}
	if a.Egress.Rate > 0 {
		if err := s.links.QdiscReplace(limiter(near.Attrs().Index, a.Egress)); err != nil {
			return fmt.Errorf("limit what leaves %s: %w", a.Interface, err)
		}
	}
	if err := n.home.links.LinkSetUp(far); err != nil {
		return fmt.Errorf("set %s up: %w", a.Link, err)
	}
	return n.configure(a, s, near)
}

// Values of addr_gen_mode (include/uapi/linux/if_link.h).
const (
	genModeEUI64 = 0
	genModeNone  = 1
)

// prepare sets what must be set from inside the sandbox: offloads and IPv6.
func (n *Node) prepare(a *attachment) error {
	if n.Offloads != nil {
		if err := n.Offloads(a.Interface); err != nil {
			return err
		}
	}
	for _, ip := range a.IPs {
		if ip.Addr().Is6() {
			return enableIPv6(a.Interface)
		}
	}
	return nil
}

// enableIPv6 enables IPv6 on an interface. Some runtimes disable it on all links of a
// sandbox.
func enableIPv6(ifname string) error {
	file := sysctl.Root + "net/ipv6/conf/" + ifname + "/disable_ipv6"
	now, err := sysctl.Read(file)
	if err != nil || now == "0" {
		return err
	}
	return sysctl.Write(file, "0")
}

// limitDelay is how long a packet may wait in the limiter, in seconds. Packets that would
// wait longer are dropped.
const limitDelay = 0.025

// limiter is a token bucket on an interface (tc-tbf(8)).
func limiter(index int, l cni.Limit) *netlink.Tbf {
	rate, burst := float64(max(l.Rate/8, 1)), float64(l.Burst/8)
	ticks := netlink.TickInUsec() * burst / rate * netlink.TIME_UNITS_PER_SEC
	return &netlink.Tbf{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
		Rate:       uint64(rate),
		Limit:      uint32(min(rate*limitDelay+burst, math.MaxUint32)),
		Buffer:     uint32(min(ticks, math.MaxUint32)),
	}
}
