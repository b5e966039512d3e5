package host

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// The part of the Node's side that changes while the switch runs, as Services
// and Egresses come and go:
//
//	neighbour  the virtual Service address is behind the gateway, and its MAC
//	           address is the one that the pipeline takes for a router
//	routes     Services' addresses: via the virtual Service address
//	address    of an Egress: the Node answers for it on the underlay
//	nftables   the sets of the table: NodePorts, marks of Egresses (nftside.go)
//
// The Node is compared with the wanted state, and only the difference is made.

// Side is the wanted state of the Node, from the objects in the switch.
type Side struct {
	// ServiceCIDRs hold the ClusterIPs. External are the Services' other addresses.
	// NodePorts are the Services' ports on the addresses of NodePortAddresses.
	ServiceCIDRs      []netip.Prefix
	External          []netip.Addr
	NodePortAddresses []netip.Addr
	NodePorts         []NodePort
	// Egresses are the addresses that this Node holds.
	Egresses []Egress
	// Peers are the other Nodes that are not in Config.Peers.
	Peers []Peer
	// Pods are this Node's pods to which another CNI has routes (Config.PodRoutes).
	Pods []netip.Addr
	// Multicast are other Nodes whose pods' multicast comes by the tunnel
	// (multicastroutes.go).
	Multicast []netip.Addr
}

// NodePort is a port that a Service has on the Node's addresses of one family,
// 4 or 6.
type NodePort struct {
	Proto  uint8 // an IP protocol with ports
	Family uint8
	Port   uint16
}

// Egress is an address, and the mark of packets that leave the Node by it.
type Egress struct {
	Addr netip.Addr
	Mark uint8
}

// Virtual are the addresses of one family between the host and the pipeline.
type Virtual struct {
	Service  netip.Addr // next hop to all Services, and source of masqueraded packets to them
	NodePort netip.Addr // destination of packets to a NodePort
	Reply    netip.Addr // next hop of answers to other Nodes' pods (Config.EgressReplies)
}

// thing is one address, route, neighbour or rule that can be made and undone. there says
// whether the Node has it, as it was made.
type thing struct {
	name       string
	make, back func() error
	there      func(*kernel) bool
}

// Set makes the Node's side as in s. After an error, all that could be made exists, and the
// next call tries the rest.
func (h *Host) Set(s *Side) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	want, err := h.things(s)
	if err != nil {
		return err
	}
	return errors.Join(h.keepOnly(want), h.makeMissing(want), h.tidy(), h.setTable(s))
}

// keepOnly undoes the things that are not wanted, the last one first.
func (h *Host) keepOnly(want []thing) error {
	wanted := map[string]bool{}
	for _, t := range want {
		wanted[t.name] = true
	}
	var kept []thing
	var errs []error
	for i := len(h.side) - 1; i >= 0; i-- {
		if t := h.side[i]; wanted[t.name] {
			kept = append([]thing{t}, kept...)
		} else if err := t.back(); err != nil && !gone(err) {
			errs = append(errs, fmt.Errorf("undo %s: %w", t.name, err))
		}
	}
	h.side = kept
	return errors.Join(errs...)
}

// makeMissing makes the wanted things that do not exist, in order.
func (h *Host) makeMissing(want []thing) error {
	there := map[string]bool{}
	for _, t := range h.side {
		there[t.name] = true
	}
	var errs []error
	for _, t := range want {
		if there[t.name] {
			continue
		}
		if err := t.make(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", t.name, err))
			continue
		}
		h.side = append(h.side, t)
	}
	return errors.Join(errs...)
}

// things are the wanted things, each after those that it needs.
func (h *Host) things(s *Side) (all []thing, err error) {
	link, err := h.config.gateway()
	if err != nil {
		return nil, err
	}
	for _, v := range h.config.Virtual {
		if !s.uses(v) {
			continue
		}
		all = append(all, neighbourOf(link, v.Service), routeOf(link, single(v.Service), netip.Addr{}))
		to := []netip.Prefix{single(v.NodePort)}
		for _, p := range s.ServiceCIDRs {
			to = append(to, p.Masked())
		}
		for _, a := range s.External {
			to = append(to, single(a))
		}
		for _, p := range to {
			if p.Addr().Is4() == v.Service.Is4() {
				all = append(all, routeOf(link, p, v.Service))
			}
		}
	}
	for _, e := range s.Egresses {
		all = append(all, h.addressOf(e.Addr))
	}
	for _, p := range s.Peers {
		all = append(all, peerThings(link, p)...)
	}
	for _, a := range s.Pods {
		all = append(all, podRoute(link, a))
	}
	return all, nil
}

// uses says whether a Service has an address or port of the family.
func (s *Side) uses(v Virtual) bool {
	is4 := v.Service.Is4()
	return slices.ContainsFunc(s.ServiceCIDRs, func(p netip.Prefix) bool { return p.Addr().Is4() == is4 }) ||
		slices.ContainsFunc(s.External, func(a netip.Addr) bool { return a.Is4() == is4 }) ||
		slices.ContainsFunc(s.NodePorts, func(p NodePort) bool { return (p.Family == 4) == is4 })
}

// peerThings lead to another Node's pods. An IPv6 peer gateway needs a neighbour entry. An
// IPv4 one answers ARP (table ARPResponder).
func peerThings(link netlink.Link, p Peer) (all []thing) {
	if p.NextHop.IsValid() {
		return []thing{directThing(p)}
	}
	if p.Gateway.Is6() {
		all = append(all, neighbourOf(link, p.Gateway))
	}
	return append(all, routeOf(link, p.PodCIDR.Masked(), p.Gateway))
}

func single(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

// ownAddress is an address of the gateway.
func ownAddress(link netlink.Link, p netip.Prefix) thing {
	addr := &netlink.Addr{IPNet: ipNet(p)}
	if p.Addr().Is6() {
		addr.Flags = unix.IFA_F_NODAD
	}
	return thing{
		"address " + p.String() + " on " + link.Attrs().Name,
		func() error { return netlink.AddrReplace(link, addr) },
		func() error { return netlink.AddrDel(link, addr) },
		func(k *kernel) bool { return k.hasAddress(link, p) },
	}
}

// neighbourOf is a permanent neighbour entry with the Global Virtual MAC, to which the
// pipeline routes.
func neighbourOf(link netlink.Link, a netip.Addr) thing {
	n := &netlink.Neigh{
		LinkIndex: link.Attrs().Index, IP: a.AsSlice(), HardwareAddr: virtualMAC, State: netlink.NUD_PERMANENT,
	}
	return thing{
		"neighbour " + a.String(),
		func() error { return netlink.NeighSet(n) },
		func() error { return netlink.NeighDel(n) },
		func(k *kernel) bool { return k.hasNeighbour(n) },
	}
}

// routeOf is a route by a link, via a next hop if that is valid.
func routeOf(link netlink.Link, to netip.Prefix, via netip.Addr) thing {
	r := &netlink.Route{LinkIndex: link.Attrs().Index, Dst: ipNet(to)}
	if via.IsValid() {
		r.Gw, r.Flags = via.AsSlice(), int(netlink.FLAG_ONLINK)
	} else if to.Addr().Is4() {
		r.Scope = netlink.SCOPE_LINK
	}
	return thing{
		"route to " + to.String(),
		func() error { return netlink.RouteReplace(r) },
		func() error { return netlink.RouteDel(r) },
		func(k *kernel) bool { return k.hasRoute(r) },
	}
}

// addressOf puts an address on the link with the Node's underlay address. If the Node
// already has the address, it leaves it alone, now and when the Egress goes. Neighbours
// learn that the address has moved (announce.go).
func (h *Host) addressOf(a netip.Addr) thing {
	p := placed{Address: single(a)}
	return thing{
		"address " + a.String(),
		func() error {
			if _, err := linkWith(a); err == nil {
				return nil
			}
			at, err := linkWith(h.config.Underlay)
			if err != nil {
				return err
			}
			p.Link = at.Attrs().Name
			return h.place(p, at)
		},
		func() error {
			if p.Link == "" {
				return nil
			}
			return h.placedThing(p).back()
		},
		func(k *kernel) bool { return p.Link == "" || k.hasAddress(nil, p.Address) },
	}
}

// place records an address, puts it on a link and announces it.
func (h *Host) place(p placed, at netlink.Link) error {
	if err := h.record.addAddress(p); err != nil {
		return err
	}
	addr := &netlink.Addr{IPNet: ipNet(p.Address)}
	if p.Address.Addr().Is6() {
		addr.Flags = unix.IFA_F_NODAD // the previous Node may still have it
	}
	if err := netlink.AddrAdd(at, addr); err != nil {
		return errors.Join(err, h.record.dropAddress(p))
	}
	return announce(at, p.Address.Addr())
}

// linkWith is the link that has an address.
func linkWith(a netip.Addr) (netlink.Link, error) {
	all, err := netlink.AddrList(nil, netlink.FAMILY_ALL)
	if err != nil {
		return nil, err
	}
	for _, have := range all {
		if have.IP.Equal(net.IP(a.AsSlice())) {
			return netlink.LinkByIndex(have.LinkIndex)
		}
	}
	return nil, fmt.Errorf("no link has the address %s", a)
}
