package host

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// After an agent was killed, its gateway still has addresses, routes and neighbours. The
// next agent makes its own over them, which leaves equal ones unchanged. Then it removes
// those that it has not made, of an older configuration, or of peers and Services that are
// gone.

// LinkAlias is the alias (IFLA_IFALIAS) of the links of the agent with a socket. The next
// agent and package preflight know them by it.
func LinkAlias(socket string) string {
	if whole, err := filepath.Abs(socket); err == nil {
		socket = whole
	}
	return "antrail " + socket
}

// tidyUnasked tidies if no Set will follow.
func (h *Host) tidyUnasked(c *Config) error {
	if c.Side != nil {
		return nil
	}
	return h.tidy()
}

// tidy removes, once, what this process has not made on the gateway.
func (h *Host) tidy() error {
	if h.tidied {
		return nil
	}
	link, err := h.config.gateway()
	if err != nil {
		return err
	}
	k, err := readKernel(link)
	if err != nil {
		return err
	}
	h.tidied = true
	return errors.Join(h.tidyAddresses(k, link), h.tidyRoutes(k, link), h.tidyNeighbours(k))
}

// tidyAddresses leaves addresses alone that the kernel makes for each link.
func (h *Host) tidyAddresses(k *kernel, gateway netlink.Link) error {
	mine := h.names()
	var errs []error
	for _, a := range k.addresses {
		name := fmt.Sprintf("address %s on %s", a.IPNet, gateway.Attrs().Name)
		if a.LinkIndex == gateway.Attrs().Index && a.Scope != int(netlink.SCOPE_LINK) && !mine[name] {
			errs = append(errs, removed(name, netlink.AddrDel(gateway, &a)))
		}
	}
	return errors.Join(errs...)
}

// tidyRoutes leaves alone the kernel's own routes, which go with their addresses, and those
// with our protocol number, which other functions remove.
func (h *Host) tidyRoutes(k *kernel, gateway netlink.Link) error {
	mine := h.names()
	var errs []error
	for _, r := range k.routes {
		name := fmt.Sprintf("route to %s", r.Dst)
		if r.LinkIndex == gateway.Attrs().Index && r.Protocol != unix.RTPROT_KERNEL && r.Protocol != routeProtocol && !mine[name] {
			errs = append(errs, removed(name, netlink.RouteDel(&r)))
		}
	}
	return errors.Join(errs...)
}

func (h *Host) tidyNeighbours(k *kernel) error {
	mine := h.names()
	var errs []error
	for _, n := range k.neighbours {
		name := fmt.Sprintf("neighbour %s", n.IP)
		if n.State&netlink.NUD_PERMANENT != 0 && !mine[name] {
			errs = append(errs, removed(name, netlink.NeighDel(&n)))
		}
	}
	return errors.Join(errs...)
}

// names are the names of all our things. Making one replaces an old one of that name.
func (h *Host) names() map[string]bool {
	all := map[string]bool{}
	for _, t := range slices.Concat(h.base, h.side) {
		all[t.name] = true
	}
	return all
}

// removed is the error of a removal; nil if the thing was gone already.
func removed(what string, err error) error {
	if err == nil || gone(err) {
		return nil
	}
	return fmt.Errorf("cannot remove %s of a previous agent: %w", what, err)
}

// AskAgain removes a gateway's unresolved neighbours. The kernel asks for a neighbour once
// a second, and a pipeline that was down has not answered.
func AskAgain(gateway string) error {
	link, err := netlink.LinkByName(gateway)
	if err != nil {
		return fmt.Errorf("gateway %s: %w", gateway, err)
	}
	all, err := netlink.NeighList(link.Attrs().Index, netlink.FAMILY_ALL)
	if err != nil {
		return fmt.Errorf("neighbours of %s: %w", gateway, err)
	}
	var errs []error
	for _, n := range all {
		if n.State&(netlink.NUD_INCOMPLETE|netlink.NUD_FAILED) != 0 {
			errs = append(errs, removed("neighbour "+n.IP.String(), netlink.NeighDel(&n)))
		}
	}
	return errors.Join(errs...)
}

// TablesThere says whether both nftables tables exist (NFT_MSG_GETTABLE). Up makes them
// last.
func TablesThere() bool { return tableThere(unix.NFPROTO_INET) && tableThere(unix.NFPROTO_NETDEV) }

func tableThere(family uint8) bool {
	req := nl.NewNetlinkRequest(unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_GETTABLE, 0)
	req.AddData(&nl.Nfgenmsg{NfgenFamily: family, Version: nl.NFNETLINK_V0})
	req.AddData(nl.NewRtAttr(unix.NFTA_TABLE_NAME, nl.ZeroTerminated(TableName)))
	_, err := req.Execute(unix.NETLINK_NETFILTER, unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_NEWTABLE)
	return err == nil
}
