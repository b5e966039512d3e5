package host

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
)

// Silence finds other Nodes that do not answer ARP or NDP. The kernel accepts packets to
// them and drops them when nobody answers, without an error to the sender.
//
// The zero value is ready to use. Only one goroutine may use it.
type Silence struct{ probed map[hop]bool }

// hop is a neighbour on a link.
type hop struct {
	link int
	addr netip.Addr
}

// answered are the states in which the kernel sends to a neighbour.
const answered = netlink.NUD_REACHABLE | netlink.NUD_STALE | netlink.NUD_DELAY | netlink.NUD_PROBE | netlink.NUD_PERMANENT | netlink.NUD_NOARP

// Nodes returns the silent ones of all. A Node is silent if its next hop has failed to
// answer, or is still unresolved since the last call. Calls should be a second or more
// apart. A Node to which nothing is sent does not count. Neighbours on gateway, which are
// pods, are skipped. all is called only if a neighbour is silent. Nodes asks a silent next
// hop again, so that it notices when the Node is back.
func (s *Silence) Nodes(all func() []netip.Addr, gateway string) ([]netip.Addr, error) {
	silent, err := s.hops(gateway)
	if err != nil || len(silent) == 0 {
		return nil, err
	}
	var found []netip.Addr
	for _, node := range all() {
		routes, err := netlink.RouteGet(node.AsSlice())
		if err != nil || len(routes) == 0 {
			continue // no route: the sender gets an error
		}
		h := hop{routes[0].LinkIndex, node}
		if via, ok := netip.AddrFromSlice(routes[0].Gw); ok {
			h.addr = via.Unmap()
		}
		if silent[h] {
			found = append(found, node)
			// If this fails, the next call asks again.
			_ = netlink.NeighSet(&netlink.Neigh{LinkIndex: h.link, IP: h.addr.AsSlice(), Flags: netlink.NTF_USE, State: netlink.NUD_NONE})
		}
	}
	return found, nil
}

// hops are the silent neighbours.
func (s *Silence) hops(gateway string) (map[hop]bool, error) {
	neighbours, err := netlink.NeighList(0, netlink.FAMILY_ALL)
	if err != nil {
		return nil, fmt.Errorf("list neighbours: %w", err)
	}
	neighbours = slices.DeleteFunc(neighbours, func(n netlink.Neigh) bool {
		return n.State&answered != 0 || n.State&(netlink.NUD_FAILED|netlink.NUD_INCOMPLETE) == 0
	})
	if len(neighbours) == 0 {
		s.probed = nil
		return nil, nil
	}
	skip := 0
	if link, err := netlink.LinkByName(gateway); err == nil {
		skip = link.Attrs().Index
	}
	probed, silent := map[hop]bool{}, map[hop]bool{}
	for _, n := range neighbours {
		addr, ok := netip.AddrFromSlice(n.IP)
		if !ok || n.LinkIndex == skip {
			continue
		}
		h := hop{n.LinkIndex, addr.Unmap()}
		probed[h] = true
		if n.State&netlink.NUD_FAILED != 0 || s.probed[h] {
			silent[h] = true
		}
	}
	s.probed = probed
	return silent, nil
}
