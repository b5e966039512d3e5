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

// sysctls are what the pipeline needs of the kernel, in the families that the
// gateway has.
//
// rp_filter: the kernel takes the larger value of conf/all and the link's own,
// so 2 (loose) on the gateway is enough: a reply to a pod may come back by
// another way than the gateway.
//
// route_localnet: what the Node sends to a NodePort of 127.0.0.1 goes out of the
// gateway. That no pod reaches the Node's loopback is seen to by nftables (nft.go).
//
// accept_ra: the Node is its pods' router, so nothing that claims to be a router
// behind the gateway is believed. disable_ipv6: the Node may switch IPv6 off on
// new links, of which the gateway is one.
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
	// conf6 has a directory for every link, and "all" and "default".
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

// prepareForwarding6 looks at what switching forwarding on would cost the Node.
func (h *Host) prepareForwarding6() error {
	if all, err := sysctl.Read(sysctl.Root + forwarding6); err != nil || all == "1" {
		return err
	}
	return errors.Join(keepsDefaultRoute(), h.keepForwarding6())
}

// keepsDefaultRoute refuses to cut the Node off: a router does not believe
// routers, so the kernel would forget a default route that one has advertised,
// unless accept_ra of the link is 2.
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

// keepForwarding6 remembers which links forward although conf/all does not: to
// write that one writes them all, now and on Down.
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

// setSysctl writes a value and remembers the one before. A value that is right
// already is left alone, now and on Down.
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

// willChange writes down a sysctl that is about to change, and how to undo it. One
// that was taken over keeps the value that it had first.
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
