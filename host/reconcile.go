package host

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/antrail/antrail/internal/nft"
	"github.com/antrail/antrail/internal/sysctl"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Another program may take away what is ours: a network manager that tidies
// addresses up, a firewall that begins with `nft flush ruleset`, a script that
// writes sysctls. Mend compares the Node with what Up and Set made, and makes what
// is not there again. Only what is ours is looked at, and only what is missing or
// different is made; it is never fought over faster than the caller calls.

// Reconcile puts back what is not as Up and Set made it, and tells what that was.
func (h *Host) Reconcile() (putBack []string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.base == nil {
		return nil, nil // Down came first
	}
	var errs []error
	for _, part := range []func() ([]string, error){h.reconcileSysctls, h.reconcileThings, h.reconcileTables} {
		did, err := part()
		putBack, errs = append(putBack, did...), append(errs, err)
	}
	return putBack, errors.Join(errs...)
}

// TableMoved says whether anybody has changed any nftables table since Mend looked:
// a question that costs little.
func (h *Host) TableMoved() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.table.moved()
}

// reconcileSysctls writes the values again. Those that the Node had are in the record.
func (h *Host) reconcileSysctls() (did []string, err error) {
	var errs []error
	for _, s := range h.config.sysctls() {
		now, err := sysctl.Read(sysctl.Root + s.path)
		if err != nil || now == s.value {
			errs = append(errs, err)
			continue
		}
		if err = h.setSysctl(s); err == nil {
			did = append(did, fmt.Sprintf("sysctl %s, which was %s", s.path, now))
		}
		errs = append(errs, err)
	}
	return did, errors.Join(errs...)
}

// reconcileThings makes the gateway's link up, and what hangs on it and on the underlay.
func (h *Host) reconcileThings() (did []string, err error) {
	link, err := h.config.gateway()
	if err != nil {
		return nil, err
	}
	if link.Attrs().Flags&net.FlagUp == 0 {
		if err := netlink.LinkSetUp(link); err != nil {
			return nil, fmt.Errorf("gateway %s up: %w", h.config.Gateway, err)
		}
		did = append(did, "link "+h.config.Gateway+" up")
	}
	k, err := look(link)
	if err != nil {
		return did, err
	}
	var errs []error
	for _, t := range slices.Concat(h.base, h.side) {
		if t.there(k) {
			continue
		}
		if err := t.make(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", t.name, err))
			continue
		}
		did = append(did, t.name)
	}
	return did, errors.Join(errs...)
}

// reconcileTables writes both tables anew when one of them is not as it was.
func (h *Host) reconcileTables() (did []string, err error) {
	if !h.table.moved() {
		return nil, nil
	}
	before := h.table.text
	if h.table.look(); h.table.text == before {
		return nil, nil
	}
	if err := h.writeTables(&h.config); err != nil {
		return nil, err
	}
	h.table.look()
	return []string{"nftables table " + TableName}, nil
}

// seenTable is how our nftables tables looked after the last change of ours.
type seenTable struct {
	text       string // as nft(8) lists them
	generation uint32 // of all tables of the Node, at that time
}

// look remembers how they look, without what counters have counted. A table that
// cannot be listed is an empty one.
func (s *seenTable) look() {
	s.generation, _ = generation() // 0: the next question is answered by the text
	s.text = nft.List("inet", TableName) + nft.List("netdev", TableName)
}

// moved says whether any table of the Node has changed.
func (s *seenTable) moved() bool {
	now, err := generation()
	return err != nil || now == 0 || now != s.generation
}

// generation counts the changes of the namespace's nftables (NFT_MSG_GETGEN).
func generation() (uint32, error) {
	req := nl.NewNetlinkRequest(unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_GETGEN, 0)
	req.AddData(&nl.Nfgenmsg{NfgenFamily: unix.AF_UNSPEC, Version: nl.NFNETLINK_V0})
	answers, err := req.Execute(unix.NETLINK_NETFILTER, unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_NEWGEN)
	if err != nil {
		return 0, fmt.Errorf("generation of nftables: %w", err)
	}
	for _, a := range answers {
		attrs, err := nl.ParseRouteAttr(a[min(len(a), nl.SizeofNfgenmsg):])
		if err != nil {
			return 0, fmt.Errorf("generation of nftables: %w", err)
		}
		for _, at := range attrs {
			if at.Attr.Type == unix.NFTA_GEN_ID && len(at.Value) >= 4 {
				return bigEndian(at.Value), nil
			}
		}
	}
	return 0, errors.New("generation of nftables: the kernel gave none")
}

func bigEndian(b []byte) uint32 {
	return uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
}

// kernel is what the Node has now: all addresses, the gateway's routes and those of
// the underlay that are ours (directroutes.go), and the gateway's neighbours.
type kernel struct {
	addresses  []netlink.Addr
	routes     []netlink.Route
	neighbours []netlink.Neigh
	rules      []netlink.Rule // that are ours
}

// look asks for it.
func look(gateway netlink.Link) (k *kernel, err error) {
	k = new(kernel)
	if k.addresses, err = netlink.AddrList(nil, netlink.FAMILY_ALL); err != nil {
		return nil, fmt.Errorf("addresses: %w", err)
	}
	if k.routes, err = netlink.RouteList(gateway, netlink.FAMILY_ALL); err != nil {
		return nil, fmt.Errorf("routes: %w", err)
	}
	direct, err := directRoutes()
	if err != nil {
		return nil, err
	}
	replies, err := netlink.RouteListFiltered(netlink.FAMILY_ALL, &netlink.Route{Table: replyTable}, netlink.RT_FILTER_TABLE)
	if err != nil {
		return nil, fmt.Errorf("routes: %w", err)
	}
	pods, err := podRoutes()
	if err != nil {
		return nil, err
	}
	k.routes = slices.Concat(k.routes, direct, replies, pods)
	if k.rules, err = replyRules(); err != nil {
		return nil, err
	}
	if k.neighbours, err = netlink.NeighList(gateway.Attrs().Index, netlink.FAMILY_ALL); err != nil {
		return nil, fmt.Errorf("neighbours: %w", err)
	}
	return k, nil
}

// hasAddress looks on a link, or on all of them.
func (k *kernel) hasAddress(on netlink.Link, p netip.Prefix) bool {
	want := ipNet(p).String()
	return slices.ContainsFunc(k.addresses, func(a netlink.Addr) bool {
		return a.IPNet.String() == want && (on == nil || a.LinkIndex == on.Attrs().Index)
	})
}

// hasRoute wants the next hop, too.
func (k *kernel) hasRoute(want *netlink.Route) bool {
	return slices.ContainsFunc(k.routes, func(r netlink.Route) bool {
		return r.Dst != nil && r.Dst.String() == want.Dst.String() && r.Gw.Equal(want.Gw) && r.LinkIndex == want.LinkIndex
	})
}

// hasNeighbour wants it permanent and with its MAC.
func (k *kernel) hasNeighbour(want *netlink.Neigh) bool {
	return slices.ContainsFunc(k.neighbours, func(n netlink.Neigh) bool {
		return n.IP.Equal(want.IP) && n.State&netlink.NUD_PERMANENT != 0 && n.HardwareAddr.String() == want.HardwareAddr.String()
	})
}
