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

// A gateway whose agent was killed is still there, with addresses, routes and
// neighbours. The next agent makes its own over them, which changes nothing of what is
// the same, and then removes those that it has not made: another configuration has
// other addresses, and peers and Services have gone meanwhile.

// LinkAlias is the alias (IFLA_IFALIAS) of links that the agent of a socket makes, by
// which its successor knows them, and so does package preflight.
func LinkAlias(socket string) string {
	if whole, err := filepath.Abs(socket); err == nil {
		socket = whole
	}
	return "antrail " + socket
}

// tidyUnasked tidies when nobody is going to ask for more than Up has made.
func (h *Host) tidyUnasked(c *Config) error {
	if c.Side != nil {
		return nil
	}
	return h.tidy()
}

// tidy removes from the gateway, once, what is not of this process.
func (h *Host) tidy() error {
	if h.tidied {
		return nil
	}
	link, err := h.config.gateway()
	if err != nil {
		return err
	}
	k, err := look(link)
	if err != nil {
		return err
	}
	h.tidied = true
	return errors.Join(h.tidyAddresses(k, link), h.tidyRoutes(k, link), h.tidyNeighbours(k))
}

// tidyAddresses leaves those alone that the kernel makes for each link.
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

// tidyRoutes leaves those alone that the kernel made, which go with their addresses,
// and those that others look after, which bear our number.
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

// names are those of all that is ours: making one replaces what was there under it.
func (h *Host) names() map[string]bool {
	all := map[string]bool{}
	for _, t := range slices.Concat(h.base, h.side) {
		all[t.name] = true
	}
	return all
}

// removed is the error of a removal, if what was removed was there.
func removed(what string, err error) error {
	if err == nil || gone(err) {
		return nil
	}
	return fmt.Errorf("%s of an agent before: %w", what, err)
}

// AskAgain forgets for whom a gateway has asked in vain: the kernel asks for a neighbour
// once a second, and has done so while nobody was there to answer.
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

// TablesThere says whether both nftables tables are there, which Up makes last
// (NFT_MSG_GETTABLE).
func TablesThere() bool { return tableThere(unix.NFPROTO_INET) && tableThere(unix.NFPROTO_NETDEV) }

func tableThere(family uint8) bool {
	req := nl.NewNetlinkRequest(unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_GETTABLE, 0)
	req.AddData(&nl.Nfgenmsg{NfgenFamily: family, Version: nl.NFNETLINK_V0})
	req.AddData(nl.NewRtAttr(unix.NFTA_TABLE_NAME, nl.ZeroTerminated(TableName)))
	_, err := req.Execute(unix.NETLINK_NETFILTER, unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_NEWTABLE)
	return err == nil
}
