package host

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
)

// Routes to pods of other Nodes without a tunnel lead by the underlay's links. They outlive
// the agent, because that traffic does not pass the switch. A protocol number marks them,
// by which the next Up and Clean find them.

// routeProtocol is that number (rtm_protocol of rtnetlink(7)). ip(8) shows it as "proto
// 97".
const routeProtocol = 97

// directThing is the route to the pods of a Node that is a direct neighbour. If the Node is
// behind a router, the underlay's own routing has to lead to its pods, and there is no
// route to make.
func directThing(p Peer) thing {
	return thing{
		fmt.Sprintf("route to %s via %s", p.PodCIDR.Masked(), p.NextHop),
		func() error {
			r, err := directRoute(p)
			if err != nil || r == nil {
				return err
			}
			return netlink.RouteReplace(r)
		},
		func() error {
			r, err := directRoute(p)
			if err != nil || r == nil {
				return err
			}
			return netlink.RouteDel(r)
		},
		func(k *kernel) bool {
			r, err := directRoute(p)
			return err == nil && (r == nil || k.hasRoute(r))
		},
	}
}

// directRoute is the route to a Node's pods; nil if the Node is not a direct neighbour.
func directRoute(p Peer) (*netlink.Route, error) {
	ways, err := netlink.RouteGet(p.NextHop.AsSlice())
	if err != nil || len(ways) == 0 || ways[0].Gw != nil {
		return nil, err
	}
	return &netlink.Route{
		LinkIndex: ways[0].LinkIndex, Dst: ipNet(p.PodCIDR.Masked()), Gw: p.NextHop.AsSlice(), Protocol: routeProtocol,
	}, nil
}

// directRoutes are the routes with that protocol number.
func directRoutes() ([]netlink.Route, error) {
	all, err := netlink.RouteListFiltered(netlink.FAMILY_ALL, &netlink.Route{Protocol: routeProtocol}, netlink.RT_FILTER_PROTOCOL)
	if err != nil {
		return nil, fmt.Errorf("routes: %w", err)
	}
	return slices.DeleteFunc(all, func(r netlink.Route) bool { return r.Dst == nil || r.Gw == nil }), nil
}

// takeOverDirect takes over the routes of the previous agent that Up has not made. The
// first Set removes those that are no longer wanted.
func (h *Host) takeOverDirect(*Config) error {
	left, err := directRoutes()
	if err != nil {
		return err
	}
	for _, r := range left {
		t := directThing(peerOf(&r))
		if !slices.ContainsFunc(h.base, func(b thing) bool { return b.name == t.name }) {
			h.side = append(h.side, t)
		}
	}
	return nil
}

// peerOf is the peer whose pods a route leads to.
func peerOf(r *netlink.Route) Peer {
	to, _ := netip.AddrFromSlice(r.Dst.IP)
	via, _ := netip.AddrFromSlice(r.Gw)
	bits, _ := r.Dst.Mask.Size()
	return Peer{PodCIDR: netip.PrefixFrom(to.Unmap(), bits), NextHop: via.Unmap()}
}

// cleanDirect removes all routes with that protocol number.
func cleanDirect(tell func(what string)) error {
	left, err := directRoutes()
	if err != nil {
		return err
	}
	var errs []error
	for _, r := range left {
		errs = append(errs, cleaned("route to "+r.Dst.String(), netlink.RouteDel(&r), tell))
	}
	return errors.Join(errs...)
}
