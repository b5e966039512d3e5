package host

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
)

// Another CNI has routes to the pods of this Node in the main table. Beside it:
//
//	rule       every packet looks up table 142 first
//	table 142  a pod with a port of the switch: by the gateway
//
// The other CNI's routes stay, and apply again without the rule. The rule has the protocol
// number of directroutes.go, as those of replies.go do.

const (
	podTable    = 142
	podPriority = 142 // of the rule: before the main table's rule
)

// addPodRule makes the rule if PodRoutes is set. It takes over a previous agent's routes.
// The first Set removes those that are no longer wanted.
func (h *Host) addPodRule(c *Config) error {
	if !c.PodRoutes {
		return nil
	}
	link, err := c.gateway()
	if err != nil {
		return err
	}
	left, err := podRoutes()
	if err != nil {
		return err
	}
	for _, r := range left {
		if pod, ok := netip.AddrFromSlice(r.Dst.IP); ok {
			h.side = append(h.side, podRoute(link, pod.Unmap()))
		}
	}
	return h.addBase(podRule())
}

// podRoutes are the routes of table 142.
func podRoutes() ([]netlink.Route, error) {
	all, err := netlink.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Table: podTable}, netlink.RT_FILTER_TABLE)
	if err != nil {
		return nil, fmt.Errorf("routes: %w", err)
	}
	return slices.DeleteFunc(all, func(r netlink.Route) bool { return r.Dst == nil }), nil
}

func podRule() thing {
	r := netlink.NewRule()
	r.Family, r.Table, r.Priority, r.Protocol = netlink.FAMILY_V4, podTable, podPriority, routeProtocol
	return ruleThing(fmt.Sprintf("routing rule for table %d", podTable), r)
}

// podRoute is a route to a pod by the gateway.
func podRoute(link netlink.Link, pod netip.Addr) thing {
	r := &netlink.Route{
		LinkIndex: link.Attrs().Index, Dst: ipNet(single(pod)), Scope: netlink.SCOPE_LINK, Table: podTable, Protocol: routeProtocol,
	}
	return thing{
		fmt.Sprintf("route of table %d to %s", podTable, pod),
		func() error { return netlink.RouteReplace(r) },
		func() error { return netlink.RouteDel(r) },
		func(k *kernel) bool {
			return slices.ContainsFunc(k.routes, func(have netlink.Route) bool {
				return have.Table == podTable && have.LinkIndex == r.LinkIndex && have.Dst != nil && have.Dst.String() == r.Dst.String()
			})
		},
	}
}

// NotBridged refuses a port of a bridge, because the bridge would deliver to the pod past
// the switch.
func NotBridged(name string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	if link.Attrs().MasterIndex != 0 {
		return fmt.Errorf("link %s is a port of a bridge, which delivers past the switch: networkPolicyOnly needs a CNI that routes to pods", name)
	}
	return nil
}
