package uplink

import (
	"errors"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/antrail/antrail/ports/underlay"
	following "github.com/antrail/antrail/ports/ways"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// The kernel knows the way to a Node: the link, the next hop, its MAC address and the longest
// packet. It is asked when it reports a change, and periodically, because it does not report MTUs
// from routers. If a known neighbour has not been confirmed recently, the kernel is asked to
// confirm it, as it does itself before it sends.

// way is how packets leave the card for a Node.
type way struct {
	from, to [6]byte
	mtu      int // of outer IP packets
}

// ways are the known ways.
type ways struct {
	link   string
	local  netip.Addr
	handle *netlink.Handle
	follow *following.Follower
	now    atomic.Pointer[map[netip.Addr]way]

	mu    sync.Mutex // setNodes and look
	nodes []netip.Addr
	once  sync.Once
}

// usable are the states of a neighbour with a valid MAC address.
const usable = netlink.NUD_REACHABLE | netlink.NUD_STALE | netlink.NUD_DELAY | netlink.NUD_PROBE | netlink.NUD_PERMANENT | netlink.NUD_NOARP

// openWays begins to follow the kernel, in the calling thread's namespace.
func openWays(link string, local netip.Addr) (*ways, error) {
	w := &ways{link: link, local: local}
	w.now.Store(&map[netip.Addr]way{})
	var err error
	if w.handle, err = netlink.NewHandle(unix.NETLINK_ROUTE); err != nil {
		return nil, err
	}
	if w.follow, err = following.Follow(w.look, unix.RTNLGRP_NEIGH, unix.RTNLGRP_LINK, unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV6_ROUTE); err != nil {
		w.handle.Close()
		return nil, err
	}
	return w, nil
}

// setNodes replaces the Nodes whose ways are followed.
func (w *ways) setNodes(nodes []underlay.Peer) {
	w.mu.Lock()
	w.nodes = nil
	for _, n := range nodes {
		w.nodes = append(w.nodes, n.Address)
	}
	w.mu.Unlock()
	w.look(false)
}

// look reads the ways from the kernel. With ask, the kernel confirms neighbours that were not
// confirmed recently.
func (w *ways) look(ask bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	found := map[netip.Addr]way{}
	defer func() { w.now.Store(&found) }()
	link, err := w.handle.LinkByName(w.link)
	if err != nil || link.Attrs().OperState == netlink.OperDown || len(link.Attrs().HardwareAddr) != 6 {
		return
	}
	index := link.Attrs().Index
	all, err := w.handle.NeighList(index, netlink.FAMILY_ALL)
	if err != nil {
		return
	}
	for _, node := range w.nodes {
		hop, mtu, ok := w.route(node.Unmap(), index)
		if !ok {
			continue
		}
		i := slices.IndexFunc(all, func(n netlink.Neigh) bool {
			return n.IP.Equal(hop.AsSlice()) && n.State&usable != 0 && len(n.HardwareAddr) == 6
		})
		if i < 0 {
			continue
		}
		if ask && all[i].State&netlink.NUD_STALE != 0 {
			// A failed request is repeated, or the kernel sends the packet.
			err := w.handle.NeighSet(&netlink.Neigh{LinkIndex: index, IP: hop.AsSlice(), Flags: netlink.NTF_USE, State: netlink.NUD_NONE})
			if errors.Is(err, unix.EPERM) {
				continue // without privilege only packets make the kernel confirm it: they use the underlay port until then
			}
		}
		found[node.Unmap()] = way{[6]byte(link.Attrs().HardwareAddr), [6]byte(all[i].HardwareAddr), min(mtu, link.Attrs().MTU)}
	}
}

// route is the next hop to a Node and the longest packet. It returns false if another link leads
// there.
func (w *ways) route(node netip.Addr, index int) (hop netip.Addr, mtu int, ok bool) {
	routes, err := w.handle.RouteGetWithOptions(node.AsSlice(), &netlink.RouteGetOptions{SrcAddr: w.local.AsSlice()})
	if err != nil || len(routes) == 0 || routes[0].LinkIndex != index {
		return hop, 0, false
	}
	r := routes[0]
	hop = node
	if r.Gw != nil {
		if hop, ok = netip.AddrFromSlice(r.Gw); !ok {
			return hop, 0, false
		}
	}
	if mtu = r.MTU; mtu == 0 {
		mtu = 65535 // the link's MTU
	}
	return hop.Unmap(), mtu, true
}

// close ends following, and waits until it has ended.
func (w *ways) close() {
	w.once.Do(func() {
		w.follow.Close()
		w.handle.Close()
	})
}
