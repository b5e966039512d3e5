// Package host gives the Node its side of the switch: what the kernel has to
// know so that packets that leave the pipeline by the gateway port go on, and
// packets for pods find their way into it.
//
//	address    the gateway's own address(es), the pods' default route
//	routes     each peer's pod CIDR: via <peer gateway> dev antrea-gw0 onlink.
//	           The peer gateway is no neighbour of ours; the pipeline answers
//	           ARP for it and tunnels what comes. Without a tunnel, via <peer>
//	           on the underlay (directroutes.go).
//	neighbours an IPv6 peer gateway has the Global Virtual MAC for good: nothing
//	           in the pipeline answers a neighbour solicitation for it
//	sysctls    forwarding on; ARP asked with the gateway's own address, because
//	           table ARPSpoofGuard refuses any other; reverse path check loose;
//	           no router advertisement believed on the gateway (sysctl.go); what
//	           packets that go round by the host need is only checked (loopout.go)
//	policy     with hybrid encapsulation, answers to pods that came for an Egress
//	routing    go back into the switch (replies.go); beside another CNI, packets to pods
//	           go into the switch (podroutes.go)
//	nftables   one table, "antrail": masquerade of pod traffic that leaves the
//	           cluster, forwarding of the gateway's traffic, no conntrack of the
//	           tunnel's outer packets (nft.go); no packets from the gateway to a
//	           tunnel (guard.go); marks, Services and Egresses (side.go, nftside.go); packets
//	           between a card and the tap that stands for it (sharedcard.go)
//	card       one that the switch owns (ownedcard.go): its addresses and routes move to another
//	           link (movedcard.go), as the kernel describes them (cardmessages.go)
//	multicast  between the gateway and the card (multicastroutes.go)
//
// IPv4, IPv6 or both: a family that has no gateway address is left alone. An Egress'
// address that comes to this Node is told to its neighbours (announce.go), and of other
// Nodes it is seen which do not answer (silent.go).
//
// What another program takes away of this is put back (reconcile.go, watchkernel.go). A gateway
// that outlived its agent keeps what is wanted of it (tidy.go).
//
// Everything is undone by Down, in reverse order; a sysctl gets the value back
// that it had. What a killed process would leave is in a record (changerecord.go), which
// the next Up takes over, and which Clean goes by without an agent (clean.go). No
// other program's rules, routes or tables are touched. The package acts in the network
// namespace of the calling thread.
package host

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Config is what the Node's side is made of, in one address family or both.
type Config struct {
	// Gateway is the gateway port's link, which has to be there already.
	Gateway string
	// Addresses are the gateway's own, with the pod CIDRs' prefix lengths.
	Addresses []netip.Prefix
	// PodCIDRs are this Node's pod ranges.
	PodCIDRs []netip.Prefix
	// Peers are the other Nodes, as far as they stay the same.
	Peers []Peer
	// Tunnel is what the tunnel's outer packets are; the zero value: there are none.
	Tunnel Outer
	// Masquerade translates pod traffic that leaves the cluster to the Node's
	// address.
	Masquerade bool

	// MarkMAC is the source address by which the gateway port shows a packet
	// mark.
	MarkMAC func(mark uint32) [6]byte
	// Virtual is how Services are reached through the gateway, in each family.
	Virtual []Virtual
	// EgressReplies leads answers to other Nodes' pods that came through the switch
	// for an Egress back into it, whatever routes there are (replies.go).
	EgressReplies bool
	// PodRoutes leads packets to this Node's pods into the switch although another CNI has
	// routes to them (podroutes.go).
	PodRoutes bool
	// Underlay is this Node's address there: Egresses' addresses are put beside
	// it.
	Underlay netip.Addr

	// Shared is a card that the switch shares with the kernel; nil for none (sharedcard.go).
	Shared *SharedCard
	// Owned is a card that the switch owns; nil for none (ownedcard.go).
	Owned *OwnedCard

	// Side is what is asked of the Node already; nil for nothing. It is in the nftables
	// table from the table's first moment on; Set makes the rest of it.
	Side *Side
	// Theirs says that the Node's side is up already, for another process that goes on
	// when Up fails: then nothing is taken back.
	Theirs bool

	// Record is the file that tells what was changed; "" for none. Files are
	// those that Clean removes with it.
	Record string
	Files  []string
}

// Outer is outer packets of a tunnel: of an IP protocol, to a port if that is UDP.
type Outer struct {
	Proto uint8
	Port  uint16
}

// virtualMAC is where the pipeline takes what is routed, to other Nodes and to
// Services (Antrea's Global Virtual MAC).
var virtualMAC = net.HardwareAddr{0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff}

// Peer is another Node's pods of one address family, and its gateway as next hop
// to them. With a NextHop, which is the Node itself, they are reached by the
// underlay, and not by the switch.
type Peer struct {
	PodCIDR netip.Prefix
	Gateway netip.Addr
	NextHop netip.Addr
}

// Host is the Node's side while it is up. It is for any number of goroutines.
type Host struct {
	mu     sync.Mutex
	config Config
	undo   []step
	base   []thing // that Up has made
	side   []thing // that Set has made
	filled Side    // what the sets and maps of the table hold
	tidied bool    // nothing of an agent before is on the gateway
	table  seenTable
	record *record
}

// step is one thing to take back, with the words an error needs.
type step struct {
	what string
	back func() error
}

// Up makes all of c. When one part fails it takes the others back and returns
// the error.
func Up(c Config) (*Host, error) {
	r, err := loadRecord(c.Record)
	if err != nil {
		return nil, err
	}
	h := &Host{config: c, record: r}
	h.takeOver()
	if err := r.noteChange(func() { r.Files = c.Files }); err != nil {
		return nil, err
	}
	if c.Side != nil {
		h.filled = *c.Side
	}
	for _, part := range []func(*Host, *Config) error{
		(*Host).returnOther, (*Host).checkShared,
		(*Host).setSysctls, (*Host).addAddresses, (*Host).addRoutes, (*Host).takeOverDirect, (*Host).addReplies, (*Host).addPodRule, (*Host).moveCard, (*Host).addTables,
		(*Host).tidyUnasked,
	} {
		err := part(h, &c)
		if err != nil && !c.Theirs {
			err = errors.Join(err, h.Down())
		}
		if err != nil {
			return nil, err
		}
	}
	h.table.look()
	return h, nil
}

// Down takes everything back that Up made, all of it even when a part fails,
// and returns what failed. What is gone already is no error. A second call
// does nothing.
func (h *Host) Down() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.base = nil
	errs := []error{h.keepOnly(nil)}
	for i := len(h.undo) - 1; i >= 0; i-- {
		if err := h.undo[i].back(); err != nil && !gone(err) {
			errs = append(errs, fmt.Errorf("undo %s: %w", h.undo[i].what, err))
		}
	}
	h.undo = nil
	if err := errors.Join(errs...); err != nil {
		return err // what failed stays in the record
	}
	return h.record.noteChange(func() { h.record.Sysctls = nil })
}

func (h *Host) undoLater(what string, back func() error) {
	h.undo = append(h.undo, step{what, back})
}

// gone says that a link, route or address is not there any more.
func gone(err error) bool {
	var noLink netlink.LinkNotFoundError
	return errors.As(err, &noLink) || errors.Is(err, unix.ESRCH) || errors.Is(err, unix.ENODEV) ||
		errors.Is(err, unix.ENXIO) || errors.Is(err, unix.EADDRNOTAVAIL) || errors.Is(err, unix.ENOENT)
}

// has says whether the gateway has an address of a kind.
func (c *Config) has(kind func(netip.Addr) bool) bool {
	return slices.ContainsFunc(c.Addresses, func(p netip.Prefix) bool { return kind(p.Addr()) })
}

// addAddresses sets the gateway up and gives it its addresses. Nobody else can
// have an IPv6 address of the gateway, so it is in use at once, without duplicate
// address detection (RFC 4862, section 5.4).
func (h *Host) addAddresses(c *Config) error {
	link, err := c.gateway()
	if err != nil {
		return err
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("gateway %s up: %w", c.Gateway, err)
	}
	for _, p := range c.Addresses {
		if err := h.addBase(ownAddress(link, p)); err != nil {
			return err
		}
	}
	return nil
}

// addRoutes makes the route to each peer's pods.
func (h *Host) addRoutes(c *Config) error {
	link, err := c.gateway()
	if err != nil {
		return err
	}
	for _, p := range c.Peers {
		for _, t := range peerThings(link, p) {
			if err := h.addBase(t); err != nil {
				return err
			}
		}
	}
	return nil
}

// addBase makes what stays until Down.
func (h *Host) addBase(t thing) error {
	if err := t.make(); err != nil {
		return fmt.Errorf("%s: %w", t.name, err)
	}
	h.base = append(h.base, t)
	h.undoLater(t.name, t.back)
	return nil
}

// gateway is the gateway port's link.
func (c *Config) gateway() (netlink.Link, error) {
	link, err := netlink.LinkByName(c.Gateway)
	if err != nil {
		return nil, fmt.Errorf("gateway %s: %w", c.Gateway, err)
	}
	return link, nil
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
