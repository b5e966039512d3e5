package node

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Addresses and routes of a sandbox's interface. The first interface of a sandbox
// has them in the main table. A further one has its own, for what comes from its
// addresses: what a Pod answers leaves by the interface it was asked on, for
// from another one table SpoofGuard does not let it.

// configure sets the sandbox's end up, with addresses and routes.
func (n *Node) configure(a *attachment, s *sandbox, link netlink.Link) error {
	for _, ip := range a.IPs {
		addr := &netlink.Addr{IPNet: ipNet(ip)}
		if ip.Addr().Is6() {
			addr.Flags |= unix.IFA_F_NODAD // nobody else has it, and the Pod begins at once
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
	via   netip.Addr // invalid: on the link itself
	far   bool       // via is in no prefix of the interface
	table int
	mtu   int
}

// routes are all that an attachment gets, in the order in which they can be made:
// by default everything by the Node's gateway, else what an IPAM plugin says.
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
			given := a.given(g, far)
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

// given are the routes of a gateway's family that an IPAM plugin gave. A further
// interface's route to everything is for what comes from it.
func (a *attachment) given(gateway netip.Addr, far bool) (all []way) {
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

// netlink is the route as the kernel takes it.
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

// rules lead what comes from a further interface's addresses to its table.
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

// removeRules removes from a sandbox what does not go with the link. What cannot
// be removed does no harm: nothing has the address.
func (a *attachment) removeRules(s *sandbox) {
	for _, rule := range a.rules() {
		s.links.RuleDel(rule)
	}
}
