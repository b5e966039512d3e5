package host

import (
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"

	"github.com/antrail/antrail/internal/sysctl"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// sysctls are the values that the pipeline needs, in the families that the gateway has.
//
// rp_filter: 2 (loose) on the gateway is enough, because the kernel takes the larger value
// of conf/all and the link's own. A reply to a pod may come by another link than the
// gateway.
//
// route_localnet: packets of the Node to a NodePort of 127.0.0.1 leave by the gateway.
// nftables keeps pods from the Node's loopback (nft.go).
//
// accept_ra: the Node is its pods' router, so it ignores router advertisements from the
// gateway. disable_ipv6: a Node may disable IPv6 on new links, and so on the gateway.
func (c *Config) sysctls() (all []setting) {
	if c.has(netip.Addr.Is4) {
		all = append(all,
			setting{"net/ipv4/ip_forward", "1"},
			setting{"net/ipv4/conf/" + c.Gateway + "/arp_announce", "1"},
			setting{"net/ipv4/conf/" + c.Gateway + "/rp_filter", "2"},
			setting{"net/ipv4/conf/" + c.Gateway + "/route_localnet", "1"})
	}
	if c.has(netip.Addr.Is6) {
		all = append(all,
			setting{conf6 + c.Gateway + "/disable_ipv6", "0"},
			setting{conf6 + c.Gateway + "/accept_ra", "0"},
			setting{forwarding6, "1"})
	}
	return all
}

// setting is a value below /proc/sys.
type setting struct{ path, value string }

const (
	// conf6 has a directory for each link, and "all" and "default".
	conf6       = "net/ipv6/conf/"
	forwarding6 = conf6 + "all/forwarding"
)

func (h *Host) setSysctls(c *Config) error {
	for _, s := range c.sysctls() {
		if s.path == forwarding6 {
			if err := h.prepareForwarding6(); err != nil {
				return fmt.Errorf("sysctl %s: %w", s.path, err)
			}
		}
		if err := h.setSysctl(s); err != nil {
			return fmt.Errorf("sysctl: %w", err)
		}
	}
	return nil
}

// prepareForwarding6 checks what turning forwarding on would change on the Node, and
// records it.
func (h *Host) prepareForwarding6() error {
	if all, err := sysctl.Read(sysctl.Root + forwarding6); err != nil || all == "1" {
		return err
	}
	return errors.Join(keepsDefaultRoute(), h.keepForwarding6())
}

// keepsDefaultRoute refuses to cut the Node off. When forwarding is on, the kernel forgets
// routes from router advertisements, unless accept_ra of the link is 2.
func keepsDefaultRoute() error {
	routes, err := netlink.RouteListFiltered(netlink.FAMILY_V6, &netlink.Route{Protocol: unix.RTPROT_RA}, netlink.RT_FILTER_PROTOCOL)
	if err != nil {
		return err
	}
	for _, r := range routes {
		link, err := netlink.LinkByIndex(r.LinkIndex)
		if err != nil {
			continue // it has just gone
		}
		name := link.Attrs().Name
		if v, err := sysctl.Read(sysctl.Root + conf6 + name + "/accept_ra"); err == nil && v == "1" {
			return fmt.Errorf("the Node would lose its route to %s via %s, which a router advertised; set %s%s/accept_ra to 2 first", r.Dst, r.Gw, conf6, name)
		}
	}
	return nil
}

// keepForwarding6 records the links that forward although conf/all does not. A write to
// conf/all sets them all, and so would Down.
func (h *Host) keepForwarding6() error {
	files, err := filepath.Glob(sysctl.Root + conf6 + "*/forwarding")
	if err != nil {
		return err
	}
	for _, file := range files {
		if v, err := sysctl.Read(file); err != nil || v == "0" {
			continue // an error: the link has just gone
		}
		if err := h.willChange(changed{File: file, Before: "1"}); err != nil {
			return err
		}
	}
	return nil
}

// setSysctl writes a value and records the original. A value that is right already stays,
// now and on Down.
func (h *Host) setSysctl(s setting) error {
	file := sysctl.Root + s.path
	before, err := sysctl.Read(file)
	if err != nil || before == s.value {
		return err
	}
	if err := h.willChange(changed{file, before, s.value}); err != nil {
		return err
	}
	return sysctl.Write(file, s.value)
}

// willChange records a sysctl that is about to change, and how to undo it. If the record
// has it already, the first original value stays.
func (h *Host) willChange(s changed) error {
	if h.record.hasSysctl(s.File) {
		return nil
	}
	if err := h.record.noteChange(func() { h.record.Sysctls = append(h.record.Sysctls, s) }); err != nil {
		return err
	}
	h.undoLater("sysctl "+s.File, func() error { return sysctl.Write(s.File, s.Before) })
	return nil
}
