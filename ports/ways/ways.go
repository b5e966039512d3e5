// Package ways has the kernel's routes to other Nodes.
//
//	follow.go  calling a function when the kernel's routes change
//	ways.go    the ways to Nodes, for tunnels that the kernel carries by itself
package ways

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Way is how packets leave for a Node.
type Way struct {
	Link uint32 // index of the interface, which has Ethernet headers
	Hop  netip.Addr
	MTU  int // of outer IP packets
}

// Ways are the ways to the Nodes that were asked for. Any goroutine may use them.
type Ways struct {
	local   netip.Addr
	sees    func(node netip.Addr) (mtu int, ok bool)
	changed func()
	handle  *netlink.Handle
	follow  *Follower

	mu     sync.Mutex
	known  map[netip.Addr]Way
	closed bool
}

// Open starts to follow the kernel, in the calling thread's network namespace. local is the
// source of packets. sees is the MTU that a socket sees on its way to a Node. changed is called,
// without locks, after a way that To has returned changes.
func Open(local netip.Addr, sees func(netip.Addr) (int, bool), changed func()) (*Ways, error) {
	w := &Ways{local: local, sees: sees, changed: changed, known: map[netip.Addr]Way{}}
	var err error
	if w.handle, err = netlink.NewHandle(unix.NETLINK_ROUTE); err != nil {
		return nil, err
	}
	groups := []uint{unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV4_RULE}
	if local.Is6() {
		groups = []uint{unix.RTNLGRP_IPV6_IFADDR, unix.RTNLGRP_IPV6_ROUTE, unix.RTNLGRP_IPV6_RULE, unix.RTNLGRP_IPV6_IFINFO}
	}
	w.follow, err = Follow(func(bool) { w.look() }, append(groups, unix.RTNLGRP_LINK, unix.RTNLGRP_NEXTHOP)...)
	if err != nil {
		w.handle.Close()
		return nil, err
	}
	return w, nil
}

// To is the way to a Node. It returns false if a program at tc cannot use the way.
func (w *Ways) To(node netip.Addr) (Way, bool) {
	if w == nil {
		return Way{}, false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	way, known := w.known[node]
	if !known && !w.closed {
		if way, known = w.find(node); known {
			w.known[node] = way
		}
	}
	return way, known
}

// Keep forgets the ways to unwanted Nodes.
func (w *Ways) Keep(wanted func(node netip.Addr) bool) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.known, func(node netip.Addr, _ Way) bool { return !wanted(node) })
}

// look asks the kernel again for the ways that To has returned.
func (w *Ways) look() {
	w.mu.Lock()
	before := maps.Clone(w.known)
	for node := range before {
		if way, ok := w.find(node); ok {
			w.known[node] = way
		} else {
			delete(w.known, node)
		}
	}
	same := maps.Equal(before, w.known)
	w.mu.Unlock()
	if !same {
		w.changed()
	}
}

// find asks the kernel for a way. A program at tc sends below the kernel's IP stack, so a packet
// must not need anything from that stack:
//
//  1. The interface is up and has Ethernet headers. So a WireGuard interface cannot be used.
//  2. The route has no encapsulation of its own.
//  3. A socket sees the same MTU. If it sees a lower one, IPsec uses the difference.
func (w *Ways) find(node netip.Addr) (way Way, ok bool) {
	routes, err := w.handle.RouteGetWithOptions(node.AsSlice(), &netlink.RouteGetOptions{SrcAddr: w.local.AsSlice()})
	if err != nil || len(routes) != 1 {
		return way, false
	}
	r := &routes[0]
	link, err := w.handle.LinkByIndex(r.LinkIndex)
	if err != nil || r.Type != unix.RTN_UNICAST || r.Encap != nil || r.MPLSDst != nil || len(r.MultiPath) > 0 || !CarriesEthernet(link) {
		return way, false
	}
	way = Way{Link: uint32(r.LinkIndex), Hop: node, MTU: r.MTU}
	if r.Gw != nil {
		way.Hop, _ = netip.AddrFromSlice(r.Gw)
		way.Hop = way.Hop.Unmap()
	}
	way.MTU = cmp.Or(way.MTU, link.Attrs().MTU)
	seen, can := w.sees(node)
	return way, can && seen == way.MTU && r.Via == nil && way.Hop.Is4() == node.Is4()
}

// CarriesEthernet says whether an interface is up, has Ethernet headers, and leads to
// other hosts.
func CarriesEthernet(link netlink.Link) bool {
	a := link.Attrs()
	return a.EncapType == "ether" && a.RawFlags&unix.IFF_LOOPBACK == 0 && a.RawFlags&unix.IFF_UP != 0 && a.OperState != netlink.OperDown
}

// LinkWith is the link that has an address, in the calling thread's network namespace.
func LinkWith(address netip.Addr) (netlink.Link, error) {
	all, err := netlink.AddrList(nil, netlink.FAMILY_ALL)
	if err != nil {
		return nil, err
	}
	for _, a := range all {
		if at, ok := netip.AddrFromSlice(a.IP); ok && at.Unmap() == address {
			return netlink.LinkByIndex(a.LinkIndex)
		}
	}
	return nil, fmt.Errorf("no link has the address %s", address)
}

// Close ends following. Close of a nil Ways does nothing.
func (w *Ways) Close() {
	if w == nil {
		return
	}
	w.mu.Lock()
	was := w.closed
	w.closed = true
	w.mu.Unlock()
	if !was {
		w.follow.Close()
		w.handle.Close()
	}
}
