package node

import (
	"errors"
	"fmt"
	"math"
	"net"

	"github.com/antrail/antrail/cni"
	"github.com/antrail/antrail/internal/sysctl"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// The link of an attachment is a veth pair: the Node's end is the port, the other
// end the sandbox's interface.

// makeLink makes the pair, the Node's end down. A link of the Node that has the
// name already can only be of the same attachment, of which the record was lost:
// the name follows from it.
func (n *Node) makeLink(a *attachment, s *sandbox) error {
	if err := n.removeLink(a.Link); err != nil {
		return err
	}
	if _, err := s.links.LinkByName(a.Interface); err == nil {
		return types.NewError(cni.CodeNameTaken, "the sandbox has an interface "+a.Interface+" already", "")
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

// removeLink removes the Node's end, and with it the other. That it is gone is no
// error; what is no veth is not ours.
func (n *Node) removeLink(name string) error {
	link, err := n.home.links.LinkByName(name)
	if noLink(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if link.Type() != "veth" {
		return fmt.Errorf("link %s is a %s, so it is not ours", name, link.Type())
	}
	if err := n.home.links.LinkDel(link); err != nil && !noLink(err) {
		return fmt.Errorf("link %s: %w", name, err)
	}
	return nil
}

// noLink says whether an error is that a link is not there.
func noLink(err error) bool {
	return errors.As(err, new(netlink.LinkNotFoundError)) || errors.Is(err, unix.ENODEV)
}

// setUp gives both ends what they need to carry packets. The Node has no address
// of its own on its end, not even a link-local one: nothing of the Node's is to
// reach the Pod but through the switch.
func (n *Node) setUp(a *attachment, s *sandbox) error {
	far, err := n.home.links.LinkByName(a.Link)
	if err != nil {
		return err
	}
	near, err := s.links.LinkByName(a.Interface)
	if err != nil {
		return err
	}
	// The link-local address is the one that follows from the MAC address, as table
	// SpoofGuard knows it.
	for _, mode := range []error{
		n.home.links.LinkSetIP6AddrGenMode(far, genModeNone), s.links.LinkSetIP6AddrGenMode(near, genModeEUI64),
	} {
		if mode != nil && !errors.Is(mode, unix.EAFNOSUPPORT) && !errors.Is(mode, unix.EOPNOTSUPP) {
			return fmt.Errorf("addr_gen_mode of %s: %w", a.Link, mode)
		}
	}
	if err := s.inside(func() error { return n.prepare(a) }); err != nil {
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

// prepare does what needs the sandbox's own thread.
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

// enableIPv6 undoes what some runtimes do to all links of a sandbox.
func enableIPv6(ifname string) error {
	file := sysctl.Root + "net/ipv6/conf/" + ifname + "/disable_ipv6"
	now, err := sysctl.Read(file)
	if err != nil || now == "0" {
		return err
	}
	return sysctl.Write(file, "0")
}

// limitDelay is how long a packet may wait for its turn, in seconds: what would
// wait longer is lost.
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
