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

// Multicast of IPv4 between pods and the outside. The kernel forwards it between the gateway and
// the card with the Node's address (linux/mroute.h), by two kinds of routes:
//
//	(*,*)  what comes from the gateway leaves by the card
//	(*,G)  what comes by the card for group G leaves by the gateway, and the other way round
//
// The routes are of any source: the kernel asks nobody about a packet, and no route grows old.
// A group whose members are pods of this Node has a route, and the card is its member: so
// routers and snooping switches outside send it here. The memberships are spread over sockets,
// since Linux bounds those of one (igmp_max_memberships).
//
// Packets of another Node's pods are dropped on the way from the card to the gateway, because the
// tunnel brings them too. The rule is in the forward hook, so processes of the Nodes still hear each
// other.
//
// The kernel takes 1 from the TTL. It forgets routes and memberships when nobody has the sockets
// any more: a keeper has copies of them for the agent that follows. It has one socket of routes:
// beside pimd or smcroute, Set fails.

// multicastNodes is the set of Side.Multicast.
const multicastNodes = "multicast-nodes"

// addMulticast adds the set, and the rule of the chain "forward".
func addMulticast(t nft.Table, c *Config) {
	t.Set(multicastNodes, families[0].addrType)
	t.Rule("forward", "oifname", quote(c.Gateway), "ip daddr 224.0.0.0/4 ip saddr @"+multicastNodes, "drop")
}

// Options of the socket, by linux/mroute.h.
const (
	mrtInit        = 200
	mrtAddVIF      = 202
	mrtAddMFCProxy = 210
	mrtDelMFCProxy = 211
	vifByIndex     = 0x8 // VIFF_USE_IFINDEX
)

// The interfaces of the routes. The card is upstream: (*,*) leads there.
const (
	cardVIF = iota
	gatewayVIF
	vifs
)

// perSocket is how many groups a socket has at most. Linux allows 20 by default.
const perSocket = 16

// KeptRoutes says what sockets are for: the first has the routes, and each other one memberships.
type KeptRoutes struct {
	Links  [vifs]int      `json:"links"` // indexes
	Groups [][]netip.Addr `json:"groups"`
}

// RouteKeeper keeps copies of the sockets while no agent runs. A nil one keeps nothing.
type RouteKeeper interface {
	// Keep takes copies in place of those before; without sockets it lets those go.
	Keep(KeptRoutes, []int) error
	// Kept gives copies, which are the caller's; none if nothing is kept.
	Kept() (KeptRoutes, []int, error)
}

// MulticastRoutes are the routes of one Node. It is for one goroutine.
type MulticastRoutes struct {
	gateway  string
	underlay netip.Addr
	keeper   RouteKeeper
	known    bool      // it is known what the keeper has
	free     bool      // the keeper has nothing
	moved    bool      // the keeper does not have what there is
	socket   int       // that the kernel has the routes of; -1: none
	links    [vifs]int // indexes
	members  []*membership
}

// membership is a socket with groups that the card is a member of.
type membership struct {
	socket int
	groups []netip.Addr
}

// NewMulticastRoutes are those between a gateway and the link that has an address. There are none
// before Set, which goes on with those that the keeper has.
func NewMulticastRoutes(gateway string, underlay netip.Addr, keeper RouteKeeper) *MulticastRoutes {
	return &MulticastRoutes{gateway: gateway, underlay: underlay, keeper: keeper, socket: -1}
}

// Set makes routes for exactly these groups, beside the one for what pods send. If a link is
// another one than before, it makes all of them again. After an error, a further call tries the rest.
func (m *MulticastRoutes) Set(groups []netip.Addr) error {
	links, err := m.look()
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

// look finds the links.
func (m *MulticastRoutes) look() (links [vifs]int, err error) {
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

// borrow goes on with what the keeper has, once.
func (m *MulticastRoutes) borrow() error {
	if m.known || m.keeper == nil {
		return nil
	}
	kept, sockets, err := m.keeper.Kept()
	if err != nil {
		return fmt.Errorf("multicast routes of the agent before: %w", err)
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

// keep gives the keeper what there is now.
func (m *MulticastRoutes) keep() error {
	if !m.moved || m.keeper == nil {
		return nil
	}
	kept, sockets := KeptRoutes{Links: m.links}, []int{m.socket}
	for _, x := range m.members {
		kept.Groups, sockets = append(kept.Groups, slices.Clone(x.groups)), append(sockets, x.socket)
	}
	if err := m.keeper.Keep(kept, sockets); err != nil {
		return fmt.Errorf("multicast routes end with this agent: %w", err)
	}
	m.moved, m.free = false, false
	return nil
}

// open makes the socket with its interfaces, and the route of what pods send.
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
	nothing := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K}} // nobody reads the socket
	if err = unix.SetsockoptSockFprog(s, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &nothing[0]}); err != nil {
		return fmt.Errorf("multicast routes: filter: %w", err)
	}
	if err = unix.SetsockoptInt(s, unix.IPPROTO_IP, mrtInit, 1); errors.Is(err, unix.EADDRINUSE) {
		return fmt.Errorf("multicast routes: another program has those of this Node, such as pimd or smcroute: %w", err)
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

// Close closes the sockets of this process. Routes and memberships end with the last copies.
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
		return fmt.Errorf("multicast routes: their copies stay: %w", err)
	}
	m.free = true
	return nil
}

// groups are those that the card is a member of.
func (m *MulticastRoutes) groups() (all []netip.Addr) {
	for _, x := range m.members {
		all = append(all, x.groups...)
	}
	return all
}

// join makes the card a member of a group, and its route.
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

// member makes the card a member of a group by a socket with room, or by a further one.
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

// leave is the end of join.
func (m *MulticastRoutes) leave(g netip.Addr) error {
	for _, x := range m.members {
		if slices.Contains(x.groups, g) {
			return errors.Join(m.end(x, g), m.route(mrtDelMFCProxy, g))
		}
	}
	return nil
}

// end ends a membership, and its socket with the last one.
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

// mfcctl is struct mfcctl for a group of any source. Packets with a TTL of more than 1 pass.
func mfcctl(g netip.Addr) string {
	b := make([]byte, 60)
	a := g.As4()
	copy(b[4:], a[:])
	binary.NativeEndian.PutUint16(b[8:], cardVIF)
	b[10+cardVIF], b[10+gatewayVIF] = 1, 1
	return string(b)
}
