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
// routers and snooping switches outside send it here. One socket holds one membership, since
// Linux bounds those of a socket (igmp_max_memberships).
//
// Packets of another Node's pods are dropped on the way from the card to the gateway, because the
// tunnel brings them too. The rule is in the forward hook, so processes of the Nodes still hear each
// other.
//
// The kernel takes 1 from the TTL. It forgets the routes when the socket is closed, and has one
// such socket: beside pimd or smcroute, Set fails.

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

// MulticastRoutes are the routes of one Node. It is for one goroutine.
type MulticastRoutes struct {
	gateway  string
	underlay netip.Addr
	socket   int       // that the kernel has the routes of; -1: none
	links    [vifs]int // indexes
	members  map[netip.Addr]int
}

// NewMulticastRoutes are those between a gateway and the link that has an address. There are none
// before Set.
func NewMulticastRoutes(gateway string, underlay netip.Addr) *MulticastRoutes {
	return &MulticastRoutes{gateway: gateway, underlay: underlay, socket: -1}
}

// Set makes routes for exactly these groups, beside the one for what pods send. If a link is
// another one than before, it makes all of them again. After an error, a further call tries the rest.
func (m *MulticastRoutes) Set(groups []netip.Addr) error {
	links, err := m.look()
	if err != nil {
		return err
	}
	if m.socket >= 0 && links != m.links {
		m.Close()
	}
	if m.socket < 0 {
		if err := m.open(links); err != nil {
			return err
		}
	}
	var errs []error
	for g := range m.members {
		if !slices.Contains(groups, g) {
			errs = append(errs, m.leave(g))
		}
	}
	for _, g := range groups {
		if _, there := m.members[g]; !there {
			errs = append(errs, m.join(g))
		}
	}
	return errors.Join(errs...)
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

// open makes the socket with its interfaces, and the route of what pods send.
func (m *MulticastRoutes) open(links [vifs]int) (err error) {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_IGMP)
	if err != nil {
		return fmt.Errorf("multicast routes: socket: %w", err)
	}
	m.socket, m.links, m.members = s, links, map[netip.Addr]int{}
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

// Close removes all routes and memberships.
func (m *MulticastRoutes) Close() {
	for _, s := range m.members {
		unix.Close(s)
	}
	if m.socket >= 0 {
		unix.Close(m.socket)
	}
	m.socket, m.members = -1, nil
}

// join makes the card a member of a group, and its route.
func (m *MulticastRoutes) join(g netip.Addr) error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("multicast group %s: socket: %w", g, err)
	}
	at := &unix.IPMreqn{Multiaddr: g.As4(), Ifindex: int32(m.links[cardVIF])}
	if err := unix.SetsockoptIPMreqn(s, unix.IPPROTO_IP, unix.IP_ADD_MEMBERSHIP, at); err != nil {
		unix.Close(s)
		return fmt.Errorf("multicast group %s: %w", g, err)
	}
	if err := m.route(mrtAddMFCProxy, g); err != nil {
		unix.Close(s)
		return err
	}
	m.members[g] = s
	return nil
}

// leave is the end of join.
func (m *MulticastRoutes) leave(g netip.Addr) error {
	unix.Close(m.members[g])
	delete(m.members, g)
	return m.route(mrtDelMFCProxy, g)
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
