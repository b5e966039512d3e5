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

// An attachment by layer 3 is alone on its link with its router. It has an address of 32
// bits and a next hop that no machine has. The next hop's neighbour entry is permanent, so
// the Pod sends no ARP requests. All these attachments have the same MAC address, because
// no two share a link.

// nextHop is the router of all attachments by layer 3, a link-local address (RFC 3927).
var nextHop = netip.AddrFrom4([4]byte{169, 254, 1, 1})

// routedMAC is the MAC address of all attachments by layer 3.
var routedMAC = net.HardwareAddr{0, 0, 0, 0, 0, 2}

// dropPrefixLengths makes each address of an attachment a /32. IPv6 is an error.
func (a *attachment) dropPrefixLengths() error {
	for i, ip := range a.IPs {
		if !ip.Addr().Is4() {
			return types.NewError(cni.CodePodUnsuited, fmt.Sprintf("layer 3 attaches no IPv6 address: %v", ip.Addr()), "use attach: layer2, which has both families")
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

// neighbour is the permanent neighbour entry of the next hop.
func (n *Node) neighbour(a *attachment, index int) *netlink.Neigh {
	link := n.LinkMAC(a.OFPort)
	return &netlink.Neigh{LinkIndex: index, Family: unix.AF_INET, State: netlink.NUD_PERMANENT, IP: nextHop.AsSlice(), HardwareAddr: link[:]}
}

// addNeighbour adds the next hop's neighbour entry to a sandbox, for layer 3.
func (n *Node) addNeighbour(a *attachment, s *sandbox, link netlink.Link) error {
	if !a.Routed {
		return nil
	}
	if err := s.links.NeighSet(n.neighbour(a, link.Attrs().Index)); err != nil {
		return fmt.Errorf("neighbour %v on %s: %w", nextHop, a.Interface, err)
	}
	return nil
}

// checkNeighbour returns an error if the sandbox lacks the next hop's neighbour entry.
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
