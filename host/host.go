// Package host sets up the Node's side of the switch in the kernel. Packets that leave
// the pipeline by the gateway port go on from there, and packets to pods enter it there.
//
//	address    the gateway's own address(es), the pods' default route
//	routes     each peer's pod CIDR: via <peer gateway> dev antrea-gw0 onlink.
//	           The peer gateway is on no link of this Node; the pipeline answers
//	           ARP for it and tunnels the packets. Without a tunnel, via <peer>
//	           on the underlay (directroutes.go).
//	neighbours an IPv6 peer gateway has a permanent entry with the Global Virtual
//	           MAC: no table answers neighbour solicitations for it
//	sysctls    forwarding on; ARP requests with the gateway's own address, because
//	           table ARPSpoofGuard refuses any other; reverse path check loose;
//	           router advertisements ignored on the gateway (sysctl.go). The sysctls
//	           for packets that loop through the host are only checked (loopout.go)
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
// IPv4, IPv6 or both: a family without a gateway address is left alone. When an Egress'
// address comes to this Node, its neighbours are notified (announce.go). Other Nodes that do
// not answer are found (silent.go).
//
// If another program removes a part of this, the package restores it (reconcile.go,
// watchkernel.go). A gateway that outlived its agent keeps what is still wanted (tidy.go).
//
// Down undoes everything in reverse order, and restores sysctls. A record on disk lists the
// changes that outlive a kill (changerecord.go). The next Up takes them over; Clean undoes
// them without an agent (clean.go). The package touches no rules, routes or tables of other
// programs. It acts in the network namespace of the calling thread.
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

// Config describes the Node's side, in one address family or both.
type Config struct {
	// Gateway is the name of the gateway port's link, which must exist.
	Gateway string
	// Addresses are the gateway's own, with the pod CIDRs' prefix lengths.
	Addresses []netip.Prefix
	// PodCIDRs are this Node's pod ranges.
	PodCIDRs []netip.Prefix
	// Peers are the other Nodes that stay until Down.
	Peers []Peer
	// Tunnel matches the tunnel's outer packets. The zero value means no tunnel.
	Tunnel Outer
	// Masquerade translates pod traffic that leaves the cluster to the Node's
	// address.
	Masquerade bool

	// MarkMAC is the source MAC address that stands for a packet mark on the gateway port.
	MarkMAC func(mark uint32) [6]byte
	// Virtual are the virtual addresses of Services, one for each family.
	Virtual []Virtual
	// EgressReplies leads answers to other Nodes' pods back into the switch if they came
	// through it for an Egress, whatever the routes (replies.go).
	EgressReplies bool
	// PodRoutes leads packets to this Node's pods into the switch although another CNI has
	// routes to them (podroutes.go).
	PodRoutes bool
	// Underlay is this Node's address on the underlay. Egresses' addresses go on the same
	// link.
	Underlay netip.Addr

	// Shared is a card that the switch shares with the kernel; nil for none (sharedcard.go).
	Shared *SharedCard
	// Owned is a card that the switch owns; nil for none (ownedcard.go).
	Owned *OwnedCard

	// Side is the initial Side, or nil. Its elements are in the nftables table from the
	// start. Set makes the rest of it.
	Side *Side
	// Theirs says that another process has the Node's side up, and goes on if Up fails.
	// Then Up undoes nothing.
	Theirs bool

	// Record is the path of the record of changes; "" for none. Files are removed with it
	// by Clean.
	Record string
	Files  []string
}

// Outer matches a tunnel's outer packets: an IP protocol, and the destination port for UDP.
type Outer struct {
	Proto uint8
	Port  uint16
}

// virtualMAC is Antrea's Global Virtual MAC: the pipeline routes packets to it, to other
// Nodes and to Services.
var virtualMAC = net.HardwareAddr{0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff}

// Peer is another Node's pods of one address family, with its gateway as next hop. If
// NextHop is valid, it is the Node's own address, and the underlay leads there instead of
// the switch.
type Peer struct {
	PodCIDR netip.Prefix
	Gateway netip.Addr
	NextHop netip.Addr
}

// Host is the Node's side while it is up. Any number of goroutines may use it.
type Host struct {
	mu     sync.Mutex
	config Config
	undo   []step
	base   []thing // made by Up
	side   []thing // made by Set
	filled Side    // the elements of the table's sets and maps
	tidied bool    // nothing of a previous agent is on the gateway
	table  seenTable
	record *record
}

// step undoes one change. what names it in errors.
type step struct {
	what string
	back func() error
}

// Up makes all of c. If a part fails, it undoes the others and returns the error.
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
	h.table.read()
	return h, nil
}

// Down undoes everything that Up and Set made. If a part fails, Down goes on, and returns
// the errors. If something is gone already, that is not an error. A second call does nothing.
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
		return err // the failed changes stay in the record
	}
	return h.record.noteChange(func() { h.record.Sysctls = nil })
}

func (h *Host) undoLater(what string, back func() error) {
	h.undo = append(h.undo, step{what, back})
}

// gone says whether an error means that a link, route or address no longer exists.
func gone(err error) bool {
	var noLink netlink.LinkNotFoundError
	return errors.As(err, &noLink) || errors.Is(err, unix.ESRCH) || errors.Is(err, unix.ENODEV) ||
		errors.Is(err, unix.ENXIO) || errors.Is(err, unix.EADDRNOTAVAIL) || errors.Is(err, unix.ENOENT)
}

// has says whether the gateway has an address for which kind is true.
func (c *Config) has(kind func(netip.Addr) bool) bool {
	return slices.ContainsFunc(c.Addresses, func(p netip.Prefix) bool { return kind(p.Addr()) })
}

// addAddresses sets the gateway up and gives it its addresses. An IPv6 address is in use at
// once, without duplicate address detection (RFC 4862, section 5.4): it is unique.
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

// addRoutes makes the routes to the peers' pods.
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

// addBase makes a thing that stays until Down.
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
