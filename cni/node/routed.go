package node

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/antrail/antrail/cni"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// An attachment by layer 3 is alone on its link with its router. It has an address of 32 bits, a
// next hop that no machine has, and a neighbour entry that never ages. So it asks nothing in ARP.
// As nobody else is on its link, all such attachments have one MAC address.

// nextHop is the router of all attachments by layer 3 (RFC 3927: of the link only).
var nextHop = netip.AddrFrom4([4]byte{169, 254, 1, 1})

// routedMAC is the MAC address of all attachments by layer 3.
var routedMAC = net.HardwareAddr{0, 0, 0, 0, 0, 2}

// single gives an attachment its addresses alone, without the prefix around them.
func (a *attachment) single() error {
	for i, ip := range a.IPs {
		if !ip.Addr().Is4() {
			return types.NewError(cni.CodePodUnsuited, fmt.Sprintf("layer 3 has no IPv6: %v", ip.Addr()), "attach: layer2 has both families")
		}
		a.IPs[i] = netip.PrefixFrom(ip.Addr(), ip.Addr().BitLen())
	}
	return nil
}

// mac is the MAC address of the sandbox's end.
func (a *attachment) mac() net.HardwareAddr {
	if a.Routed {
		return routedMAC
	}
	return macOf(a.IPs[0].Addr())
}

// gatewaysOf are the next hops of an attachment, by family.
func (n *Node) gatewaysOf(a *attachment) []netip.Addr {
	if a.Routed {
		return []netip.Addr{nextHop}
	}
	return n.Gateways
}

// gatewayOf is the next hop of an attachment for an address.
func (n *Node) gatewayOf(a *attachment, like netip.Addr) (netip.Addr, bool) {
	if a.Routed {
		return nextHop, true
	}
	return n.gateway(like)
}

// neighbour is the entry of the next hop.
func (n *Node) neighbour(a *attachment, index int) *netlink.Neigh {
	link := n.LinkMAC(a.OFPort)
	return &netlink.Neigh{LinkIndex: index, Family: unix.AF_INET, State: netlink.NUD_PERMANENT, IP: nextHop.AsSlice(), HardwareAddr: link[:]}
}

// addNeighbour tells a sandbox where its next hop is, so that it need not ask.
func (n *Node) addNeighbour(a *attachment, s *sandbox, link netlink.Link) error {
	if !a.Routed {
		return nil
	}
	if err := s.links.NeighSet(n.neighbour(a, link.Attrs().Index)); err != nil {
		return fmt.Errorf("neighbour %v on %s: %w", nextHop, a.Interface, err)
	}
	return nil
}

// checkNeighbour looks for the next hop's entry.
func (n *Node) checkNeighbour(a *attachment, s *sandbox, link netlink.Link) error {
	if !a.Routed {
		return nil
	}
	have, err := s.links.NeighList(link.Attrs().Index, unix.AF_INET)
	if err != nil {
		return err
	}
	want := n.neighbour(a, link.Attrs().Index)
	for _, h := range have {
		if h.IP.Equal(want.IP) && h.State == want.State && h.HardwareAddr.String() == want.HardwareAddr.String() {
			return nil
		}
	}
	return fmt.Errorf("interface %s has no permanent neighbour %v at %v", a.Interface, nextHop, want.HardwareAddr)
}
