package host

import (
	"encoding/binary"
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

// Another program may remove parts of the Node's side. A network manager cleans up
// addresses, a firewall starts with `nft flush ruleset`, a script writes sysctls. Reconcile
// compares the Node with what Up and Set made, and makes missing or different parts again.
// It checks only its own parts, and only as often as its caller calls it.

// Reconcile restores what differs from what Up and Set made, and lists it.
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

// TableMoved says whether any nftables table has changed since Reconcile looked. It is
// cheap.
func (h *Host) TableMoved() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.table.moved()
}

// reconcileSysctls writes the values again. The record has the original ones.
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

// reconcileThings sets the gateway's link up, and restores addresses, routes and
// neighbours.
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
	k, err := readKernel(link)
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

// reconcileTables rewrites both tables if one of them has changed.
func (h *Host) reconcileTables() (did []string, err error) {
	if !h.table.moved() {
		return nil, nil
	}
	before := h.table.text
	if h.table.read(); h.table.text == before {
		return nil, nil
	}
	if err := h.writeTables(&h.config); err != nil {
		return nil, err
	}
	h.table.read()
	return []string{"nftables table " + TableName}, nil
}

// seenTable is the state of our nftables tables after our last change.
type seenTable struct {
	text       string // as nft(8) lists them
	generation uint32 // of all the Node's tables, at that time
}

// read reads the tables, without the values of counters. A table that cannot be listed
// counts as empty.
func (s *seenTable) read() {
	s.generation, _ = generation() // 0: the next check compares the text
	s.text = nft.List("inet", TableName) + nft.List("netdev", TableName)
}

// moved says whether any table of the Node may have changed.
func (s *seenTable) moved() bool {
	now, err := generation()
	return err != nil || now == 0 || now != s.generation
}

// generation counts the changes to the namespace's nftables (NFT_MSG_GETGEN).
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
				return binary.BigEndian.Uint32(at.Value), nil
			}
		}
	}
	return 0, errors.New("generation of nftables: the kernel gave none")
}

// kernel is the Node's current state: all addresses, the gateway's routes, our routes on
// the underlay (directroutes.go), and the gateway's neighbours.
type kernel struct {
	addresses  []netlink.Addr
	routes     []netlink.Route
	neighbours []netlink.Neigh
	rules      []netlink.Rule // ours
}

// readKernel reads the state from the kernel.
func readKernel(gateway netlink.Link) (k *kernel, err error) {
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

// hasAddress says whether a link, or any link if on is nil, has an address.
func (k *kernel) hasAddress(on netlink.Link, p netip.Prefix) bool {
	want := ipNet(p).String()
	return slices.ContainsFunc(k.addresses, func(a netlink.Addr) bool {
		return a.IPNet.String() == want && (on == nil || a.LinkIndex == on.Attrs().Index)
	})
}

// hasRoute compares the next hop, too.
func (k *kernel) hasRoute(want *netlink.Route) bool {
	return slices.ContainsFunc(k.routes, func(r netlink.Route) bool {
		return r.Dst != nil && r.Dst.String() == want.Dst.String() && r.Gw.Equal(want.Gw) && r.LinkIndex == want.LinkIndex
	})
}

// hasNeighbour wants a permanent entry with the same MAC.
func (k *kernel) hasNeighbour(want *netlink.Neigh) bool {
	return slices.ContainsFunc(k.neighbours, func(n netlink.Neigh) bool {
		return n.IP.Equal(want.IP) && n.State&netlink.NUD_PERMANENT != 0 && n.HardwareAddr.String() == want.HardwareAddr.String()
	})
}
