package node

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// A sandbox's first interface has its routes in the main table. Each further interface has
// a table of its own, which a routing rule selects by source address. So a Pod replies by
// the interface that was asked. SpoofGuard drops packets that leave by another interface.

// configure sets the sandbox's end up, with addresses and routes.
func (n *Node) configure(a *attachment, s *sandbox, link netlink.Link) error {
	for _, ip := range a.IPs {
		addr := &netlink.Addr{IPNet: ipNet(ip)}
		if ip.Addr().Is6() {
			addr.Flags |= unix.IFA_F_NODAD // the address is unique, and the Pod can send at once
		}
		if a.Table != 0 {
			addr.Flags |= unix.IFA_F_NOPREFIXROUTE
		}
		if err := s.links.AddrReplace(link, addr); err != nil {
			return fmt.Errorf("address %v on %s: %w", ip, a.Interface, err)
		}
	}
	if err := s.links.LinkSetUp(link); err != nil {
		return fmt.Errorf("set %s up: %w", a.Interface, err)
	}
	if err := n.addNeighbour(a, s, link); err != nil {
		return err
	}
	for _, r := range a.routes(n.gatewaysOf(a)) {
		route := r.netlink(link.Attrs().Index)
		if err := s.links.RouteReplace(&route); err != nil {
			return fmt.Errorf("route to %v on %s: %w", r.to, a.Interface, err)
		}
	}
	for _, rule := range a.rules() {
		if err := s.links.RuleAdd(rule); err != nil {
			return fmt.Errorf("routing rule for %v: %w", rule.Src, err)
		}
	}
	return nil
}

// way is a route of an attachment.
type way struct {
	to    netip.Prefix
	via   netip.Addr // invalid: directly on the link
	far   bool       // via is in no prefix of the interface
	table int
	mtu   int
}

// routes are all routes of an attachment, in an order in which they can be made. They are
// the IPAM plugin's, or else a default route by the gateway.
func (a *attachment) routes(gateways []netip.Addr) (all []way) {
	if a.Routed {
		all = append(all, way{to: netip.PrefixFrom(nextHop, nextHop.BitLen()), table: a.Table})
	}
	for _, ip := range a.IPs {
		if a.Table != 0 && !ip.IsSingleIP() {
			all = append(all, way{to: ip.Masked(), table: a.Table})
		}
		for _, g := range gateways {
			if g.Is4() != ip.Addr().Is4() {
				continue
			}
			far := !ip.Contains(g) && !a.Routed
			given := a.givenRoutes(g, far)
			if len(a.Routes) == 0 {
				given = []way{{to: netip.PrefixFrom(unspecified(g), 0), via: g, far: far, table: a.Table}}
			}
			all = append(all, given...)
		}
	}
	return all
}

func unspecified(like netip.Addr) netip.Addr {
	if like.Is4() {
		return netip.IPv4Unspecified()
	}
	return netip.IPv6Unspecified()
}

// givenRoutes are an IPAM plugin's routes of the gateway's family. Without a table of its
// own, a default route goes to the interface's table.
func (a *attachment) givenRoutes(gateway netip.Addr, far bool) (all []way) {
	for _, r := range a.Routes {
		to, err := prefixOf(r.Dst)
		if err != nil || to.Addr().Is4() != gateway.Is4() {
			continue
		}
		w := way{to: to.Masked(), via: gateway, far: far, mtu: r.MTU}
		if via, ok := netip.AddrFromSlice(r.GW); ok {
			w.via = via.Unmap()
		}
		if r.Table != nil {
			w.table = *r.Table
		} else if to.Bits() == 0 {
			w.table = a.Table
		}
		all = append(all, w)
	}
	return all
}

// netlink is the route for netlink.
func (w way) netlink(index int) netlink.Route {
	r := netlink.Route{LinkIndex: index, Dst: ipNet(w.to), Table: w.table, MTU: w.mtu}
	if w.via.IsValid() {
		r.Gw = net.IP(w.via.AsSlice())
	} else {
		r.Scope = netlink.SCOPE_LINK
	}
	if w.far {
		r.SetFlag(netlink.FLAG_ONLINK)
	}
	return r
}

// rules select a further interface's table for packets from its addresses.
func (a *attachment) rules() (all []*netlink.Rule) {
	if a.Table == 0 {
		return nil
	}
	for _, ip := range a.IPs {
		r := netlink.NewRule()
		r.Table, r.Priority = a.Table, a.Table
		r.Src = ipNet(netip.PrefixFrom(ip.Addr(), ip.Addr().BitLen()))
		r.Family = unix.AF_INET
		if ip.Addr().Is6() {
			r.Family = unix.AF_INET6
		}
		all = append(all, r)
	}
	return all
}

// removeRules removes the routing rules from a sandbox: unlike routes, they stay when the
// link goes. A failure does no harm, because nothing has the address.
func (a *attachment) removeRules(s *sandbox) {
	for _, rule := range a.rules() {
		s.links.RuleDel(rule)
	}
}
