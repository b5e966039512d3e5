package host

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
)

// Silence watches which other Nodes do not answer ARP or NDP. The kernel takes packets
// for them, asks for their MAC addresses, and drops the packets when nobody answers,
// without a word to who sent them.
//
// The zero value is ready to use. It is for one goroutine.
type Silence struct{ probed map[hop]bool }

// hop is a neighbour on a link.
type hop struct {
	link int
	addr netip.Addr
}

// answered are the states of a neighbour that packets go to.
const answered = netlink.NUD_REACHABLE | netlink.NUD_STALE | netlink.NUD_DELAY | netlink.NUD_PROBE | netlink.NUD_PERMANENT | netlink.NUD_NOARP

// Nodes are those of all that are silent: the next hop to them has failed to answer,
// or has been asked for in vain since the last call, which should be a second or more
// ago. Those that nobody sends to are not known to be. all is called only when some
// neighbour is silent, and those of gateway, which are pods, are not looked at. A Node
// that is silent is asked for again, so that it is seen when it is back.
func (s *Silence) Nodes(all func() []netip.Addr, gateway string) ([]netip.Addr, error) {
	silent, err := s.hops(gateway)
	if err != nil || len(silent) == 0 {
		return nil, err
	}
	var found []netip.Addr
	for _, node := range all() {
		routes, err := netlink.RouteGet(node.AsSlice())
		if err != nil || len(routes) == 0 {
			continue // sockets say so by themselves
		}
		h := hop{routes[0].LinkIndex, node}
		if via, ok := netip.AddrFromSlice(routes[0].Gw); ok {
			h.addr = via.Unmap()
		}
		if silent[h] {
			found = append(found, node)
			// What cannot be asked for now is asked for with the next look.
			_ = netlink.NeighSet(&netlink.Neigh{LinkIndex: h.link, IP: h.addr.AsSlice(), Flags: netlink.NTF_USE, State: netlink.NUD_NONE})
		}
	}
	return found, nil
}

// hops are the neighbours that are silent.
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
