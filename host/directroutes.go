package host

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
)

// Routes to pods that are reached without a tunnel lie on the underlay's links and
// outlive the agent: who is killed costs nobody the way who needs no switch of this
// Node. They bear a protocol number, by which the next Up and Clean know them.

// routeProtocol is that number (rtm_protocol of rtnetlink(7)); ip(8) shows it as
// "proto 97".
const routeProtocol = 97

// directThing is the route to the pods of a Node that is a neighbour. Behind a
// router, it is for the underlay's own routing to lead to them: then there is
// nothing to make.
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

// directRoute is the route to a Node's pods; nil when the Node is no neighbour.
func directRoute(p Peer) (*netlink.Route, error) {
	ways, err := netlink.RouteGet(p.NextHop.AsSlice())
	if err != nil || len(ways) == 0 || ways[0].Gw != nil {
		return nil, err
	}
	return &netlink.Route{
		LinkIndex: ways[0].LinkIndex, Dst: ipNet(p.PodCIDR.Masked()), Gw: p.NextHop.AsSlice(), Protocol: routeProtocol,
	}, nil
}

// directRoutes are the routes that bear our number.
func directRoutes() ([]netlink.Route, error) {
	all, err := netlink.RouteListFiltered(netlink.FAMILY_ALL, &netlink.Route{Protocol: routeProtocol}, netlink.RT_FILTER_PROTOCOL)
	if err != nil {
		return nil, fmt.Errorf("routes: %w", err)
	}
	return slices.DeleteFunc(all, func(r netlink.Route) bool { return r.Dst == nil || r.Gw == nil }), nil
}

// takeOverDirect makes the routes of an agent before ours, but for those that Up
// has made: who is not wanted any more goes with the first Set.
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

// peerOf is whose pods a route leads to.
func peerOf(r *netlink.Route) Peer {
	to, _ := netip.AddrFromSlice(r.Dst.IP)
	via, _ := netip.AddrFromSlice(r.Gw)
	bits, _ := r.Dst.Mask.Size()
	return Peer{PodCIDR: netip.PrefixFrom(to.Unmap(), bits), NextHop: via.Unmap()}
}

// cleanDirect removes all routes that bear our number.
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
