package host

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/antrail/antrail/internal/nft"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// IPv4 multicast between pods and the outside. The kernel forwards it between the gateway
// and the card with the Node's address (linux/mroute.h), by two kinds of routes:
//
//	(*,*)  what comes from the gateway leaves by the card
//	(*,G)  what comes by the card for group G leaves by the gateway, and the other way round
//
// The routes match any source, so the kernel reports no unknown packets, and no route ages.
//
// If pods of this Node are members of a group, the group has a route, and the card joins
// it. So routers and snooping switches outside send the group here. Several sockets hold
// the memberships, because Linux limits those of one socket (igmp_max_memberships).
//
// Packets of other Nodes' pods also come by the tunnel. So those from the card are dropped
// on their way to the gateway. The rule is in the forward hook, so the Nodes' own processes
// still hear each other.
//
// The kernel subtracts 1 from the TTL. When the last copy of a socket closes, it removes
// the routes and memberships. A keeper has copies for the next agent. The kernel allows one
// routing socket: if pimd or smcroute runs, Set fails.

// multicastNodes is the set of Side.Multicast.
const multicastNodes = "multicast-nodes"

// addMulticast adds the set, and the rule of the chain "forward".
func addMulticast(t nft.Table, c *Config) {
	t.Set(multicastNodes, families[0].addrType)
	t.Rule("forward", "oifname", quote(c.Gateway), "ip daddr 224.0.0.0/4 ip saddr @"+multicastNodes, "drop")
}

// Socket options, from linux/mroute.h.
const (
	mrtInit        = 200
	mrtAddVIF      = 202
	mrtAddMFCProxy = 210
	mrtDelMFCProxy = 211
	vifByIndex     = 0x8 // VIFF_USE_IFINDEX
)

// The interfaces of the routes. The card is upstream: (*,*) leads to it.
const (
	cardVIF = iota
	gatewayVIF
	vifs
)

// perSocket is the most groups of a socket. Linux allows 20 by default.
const perSocket = 16

// KeptRoutes describes sockets: the first has the routes, each other one has memberships.
type KeptRoutes struct {
	Links  [vifs]int      `json:"links"` // indexes
	Groups [][]netip.Addr `json:"groups"`
}

// RouteKeeper keeps copies of the sockets while no agent runs. Nil keeps none.
type RouteKeeper interface {
	// Keep replaces the copies. Without sockets it closes them.
	Keep(KeptRoutes, []int) error
	// Kept returns copies for the caller to close, or none.
	Kept() (KeptRoutes, []int, error)
}

// MulticastRoutes are the routes of one Node. Only one goroutine may use it.
type MulticastRoutes struct {
	gateway  string
	underlay netip.Addr
	keeper   RouteKeeper
	known    bool      // borrow has asked the keeper
	free     bool      // the keeper has no sockets
	moved    bool      // the keeper's copies are out of date
	socket   int       // the routing socket; -1: none
	links    [vifs]int // indexes
	members  []*membership
}

// membership is a socket with groups that the card is a member of.
type membership struct {
	socket int
	groups []netip.Addr
}

// NewMulticastRoutes is for a gateway and the link that has an address. It makes no routes;
// the first Set does, or continues with the keeper's.
func NewMulticastRoutes(gateway string, underlay netip.Addr, keeper RouteKeeper) *MulticastRoutes {
	return &MulticastRoutes{gateway: gateway, underlay: underlay, keeper: keeper, socket: -1}
}

// Set makes routes for exactly these groups, and the one for packets from pods. If a link
// has changed, it makes all of them again. After an error, the next call tries the rest.
func (m *MulticastRoutes) Set(groups []netip.Addr) error {
	links, err := m.findLinks()
	if err != nil {
		return err
	}
	if err := m.borrow(); err != nil {
		return err
	}
	if m.socket >= 0 && links != m.links {
		if err := m.Remove(); err != nil {
			return err
		}
	}
	if m.socket < 0 {
		if err := m.open(links); err != nil {
			return err
		}
	}
	had := m.groups()
	var errs []error
	for _, g := range had {
		if !slices.Contains(groups, g) {
			errs = append(errs, m.leave(g))
		}
	}
	for _, g := range groups {
		if !slices.Contains(had, g) {
			errs = append(errs, m.join(g))
		}
	}
	return errors.Join(append(errs, m.keep())...)
}

// findLinks finds the indexes of both links.
func (m *MulticastRoutes) findLinks() (links [vifs]int, err error) {
	gateway, err := netlink.LinkByName(m.gateway)
	if err != nil {
		return links, fmt.Errorf("multicast routes: gateway %s: %w", m.gateway, err)
	}
	card, err := linkWith(m.underlay)
	if err != nil {
		return links, fmt.Errorf("multicast routes: %w", err)
	}
	links[cardVIF], links[gatewayVIF] = card.Attrs().Index, gateway.Attrs().Index
	return links, nil
}

// borrow takes over the keeper's sockets, once.
func (m *MulticastRoutes) borrow() error {
	if m.known || m.keeper == nil {
		return nil
	}
	kept, sockets, err := m.keeper.Kept()
	if err != nil {
		return fmt.Errorf("the previous agent's multicast routes: %w", err)
	}
	if m.known, m.free = true, len(sockets) == 0; m.free {
		return nil
	}
	m.socket, m.links, m.moved = sockets[0], kept.Links, len(sockets) != 1+len(kept.Groups)
	for i, s := range sockets[1:] {
		if i < len(kept.Groups) {
			m.members = append(m.members, &membership{s, kept.Groups[i]})
		} else {
			unix.Close(s)
		}
	}
	return nil
}

// keep gives the keeper copies of the sockets, if they have changed.
func (m *MulticastRoutes) keep() error {
	if !m.moved || m.keeper == nil {
		return nil
	}
	kept, sockets := KeptRoutes{Links: m.links}, []int{m.socket}
	for _, x := range m.members {
		kept.Groups, sockets = append(kept.Groups, slices.Clone(x.groups)), append(sockets, x.socket)
	}
	if err := m.keeper.Keep(kept, sockets); err != nil {
		return fmt.Errorf("no copies of the multicast sockets, so the routes end with this agent: %w", err)
	}
	m.moved, m.free = false, false
	return nil
}

// open makes the routing socket with its interfaces, and the route for packets from pods.
func (m *MulticastRoutes) open(links [vifs]int) (err error) {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_IGMP)
	if err != nil {
		return fmt.Errorf("multicast routes: socket: %w", err)
	}
	m.socket, m.links, m.moved = s, links, true
	defer func() {
		if err != nil {
			m.Close()
		}
	}()
	nothing := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K}} // drop all packets to the socket: nothing reads it
	if err = unix.SetsockoptSockFprog(s, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &nothing[0]}); err != nil {
		return fmt.Errorf("multicast routes: filter: %w", err)
	}
	if err = unix.SetsockoptInt(s, unix.IPPROTO_IP, mrtInit, 1); errors.Is(err, unix.EADDRINUSE) {
		return fmt.Errorf("multicast routes: another program, such as pimd or smcroute, has this Node's: stop it: %w", err)
	} else if err != nil {
		return fmt.Errorf("multicast routes: %w", err)
	}
	for vif, index := range links {
		if err = unix.SetsockoptString(s, unix.IPPROTO_IP, mrtAddVIF, vifctl(vif, index)); err != nil {
			return fmt.Errorf("multicast routes: interface %d: %w", index, err)
		}
	}
	return m.route(mrtAddMFCProxy, netip.IPv4Unspecified())
}

// Close closes this process's sockets. Routes and memberships end with the last copies.
func (m *MulticastRoutes) Close() {
	for _, x := range m.members {
		unix.Close(x.socket)
	}
	if m.socket >= 0 {
		unix.Close(m.socket)
	}
	m.socket, m.members, m.known = -1, nil, false
}

// Remove removes all routes and memberships.
func (m *MulticastRoutes) Remove() error {
	m.Close()
	if m.keeper == nil || m.free {
		return nil
	}
	if err := m.keeper.Keep(KeptRoutes{}, nil); err != nil {
		return fmt.Errorf("multicast routes: cannot close the kept copies: %w", err)
	}
	m.free = true
	return nil
}

// groups are the groups that the card has joined.
func (m *MulticastRoutes) groups() (all []netip.Addr) {
	for _, x := range m.members {
		all = append(all, x.groups...)
	}
	return all
}

// join adds a membership and a route for a group.
func (m *MulticastRoutes) join(g netip.Addr) error {
	x, err := m.member(g)
	if err != nil {
		return fmt.Errorf("multicast group %s: %w", g, err)
	}
	if err := m.route(mrtAddMFCProxy, g); err != nil {
		return errors.Join(err, m.end(x, g))
	}
	return nil
}

// member joins a group on a socket with room, or on a new one.
func (m *MulticastRoutes) member(g netip.Addr) (*membership, error) {
	at := &unix.IPMreqn{Multiaddr: g.As4(), Ifindex: int32(m.links[cardVIF])}
	m.moved = true
	for _, x := range m.members {
		if len(x.groups) < perSocket && unix.SetsockoptIPMreqn(x.socket, unix.IPPROTO_IP, unix.IP_ADD_MEMBERSHIP, at) == nil {
			x.groups = append(x.groups, g)
			return x, nil
		}
	}
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	if err := unix.SetsockoptIPMreqn(s, unix.IPPROTO_IP, unix.IP_ADD_MEMBERSHIP, at); err != nil {
		return nil, errors.Join(err, unix.Close(s))
	}
	x := &membership{s, []netip.Addr{g}}
	m.members = append(m.members, x)
	return x, nil
}

// leave undoes join.
func (m *MulticastRoutes) leave(g netip.Addr) error {
	for _, x := range m.members {
		if slices.Contains(x.groups, g) {
			return errors.Join(m.end(x, g), m.route(mrtDelMFCProxy, g))
		}
	}
	return nil
}

// end drops a membership, and closes the socket after its last one.
func (m *MulticastRoutes) end(x *membership, g netip.Addr) error {
	m.moved = true
	x.groups = slices.DeleteFunc(x.groups, func(a netip.Addr) bool { return a == g })
	if len(x.groups) == 0 {
		m.members = slices.DeleteFunc(m.members, func(o *membership) bool { return o == x })
		return unix.Close(x.socket)
	}
	at := &unix.IPMreqn{Multiaddr: g.As4(), Ifindex: int32(m.links[cardVIF])}
	return unix.SetsockoptIPMreqn(x.socket, unix.IPPROTO_IP, unix.IP_DROP_MEMBERSHIP, at)
}

// route adds or removes (*,G), or (*,*) for 0.0.0.0.
func (m *MulticastRoutes) route(option int, g netip.Addr) error {
	if err := unix.SetsockoptString(m.socket, unix.IPPROTO_IP, option, mfcctl(g)); err != nil {
		return fmt.Errorf("multicast route (*,%s): %w", g, err)
	}
	return nil
}

// vifctl is struct vifctl for a link.
func vifctl(vif, index int) string {
	b := make([]byte, 16)
	binary.NativeEndian.PutUint16(b, uint16(vif))
	b[2] = vifByIndex
	binary.NativeEndian.PutUint32(b[8:], uint32(index))
	return string(b)
}

// mfcctl is struct mfcctl for a group and any source. It forwards packets with a TTL above
// 1.
func mfcctl(g netip.Addr) string {
	b := make([]byte, 60)
	a := g.As4()
	copy(b[4:], a[:])
	binary.NativeEndian.PutUint16(b[8:], cardVIF)
	b[10+cardVIF], b[10+gatewayVIF] = 1, 1
	return string(b)
}
