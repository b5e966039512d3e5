package vswitchd

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/tunnel"
	"github.com/antrail/antrail/vswitchd/bridge"
)

// With options:remote_ip=flow, a tunnel port sends to the addresses that entries write to tun_dst.
// It receives from any address, as Open vSwitch's does: entries check tun_src. With an address, it
// sends only there and receives only from there. Open vSwitch allows several ports of one kind at
// one local address, and chooses the port by the sender. Here the switch refuses the second one.

// tunnelTypes are the types of a row for a tunnel: names of kinds in package tunnel.
var tunnelTypes = []string{"geneve", "gre", "vxlan"}

// tunnelSpec is the spec of a tunnel at the door. The error is for options that are not supported.
func tunnelSpec(p *bridge.Port) (*door.TunnelSpec, error) {
	kind, known := tunnel.KindNamed(p.Type)
	if !known {
		return nil, fmt.Errorf("type %s is not supported", p.Type)
	}
	local, err := localAddress(p.Options["local_ip"])
	if err != nil {
		return nil, err
	}
	t := &door.TunnelSpec{Kind: p.Type, Local: local, MTU: p.MTU, Driver: door.DriverKernel, Options: kind == tunnel.KindGeneve}
	if t.MTU == 0 {
		t.MTU = linkMTU(local) - kind.Overhead(local.Is6())
	}
	for name, value := range p.Options {
		if err := applyTunnelOption(t, kind, name, value); err != nil {
			return nil, err
		}
	}
	switch {
	case t.Only.IsValid() && t.Only.Is4() != local.Is4():
		return nil, fmt.Errorf("options:remote_ip=%v and options:local_ip=%v are of two families", t.Only, local)
	case t.AnyPeer && t.Network != 0:
		return nil, fmt.Errorf("options:key=%d is not supported with options:remote_ip=flow: use key=flow, and match tun_id", t.Network)
	case p.Options["remote_ip"] == "":
		return nil, errors.New("options:remote_ip is missing: it is flow or an address")
	}
	return t, nil
}

// applyTunnelOption sets one option of a tunnel's row in t.
func applyTunnelOption(t *door.TunnelSpec, kind tunnel.Kind, name, value string) error {
	supported := false
	switch name {
	case "local_ip":
		supported = true
	case "remote_ip":
		return applyRemoteIP(t, value)
	case "key":
		t.AnyNetwork = value == "flow"
		n, err := strconv.ParseUint(value, 0, 24) // the width of a VNI
		t.Network, supported = uint32(n), t.AnyNetwork || err == nil
	case "csum":
		// The kernel writes the checksum of UDP in either case.
		supported = kind.Port() != 0 || value == "false"
	case "dst_port":
		supported = value == fmt.Sprint(kind.Port())
	}
	if !supported {
		return fmt.Errorf("options:%s=%s is not supported", name, value)
	}
	return nil
}

// applyRemoteIP sets options:remote_ip in t.
func applyRemoteIP(t *door.TunnelSpec, value string) error {
	if t.AnyPeer = value == "flow"; t.AnyPeer {
		return nil
	}
	a, err := netip.ParseAddr(value)
	if t.Only = a.Unmap(); err != nil || a.IsUnspecified() || a.IsMulticast() {
		return fmt.Errorf("options:remote_ip=%s is neither flow nor the address of a host", value)
	}
	return nil
}

// localAddress is the address of a tunnel: the configured one, or the source address of the
// kernel's default route.
func localAddress(configured string) (netip.Addr, error) {
	if configured != "" {
		a, err := netip.ParseAddr(configured)
		if err != nil {
			err = fmt.Errorf("options:local_ip: %w", err)
		}
		return a.Unmap(), err
	}
	for _, far := range []string{"192.0.2.1:9", "[2001:db8::1]:9"} { // documentation addresses; nothing is sent
		if c, err := net.Dial("udp", far); err == nil {
			defer c.Close()
			return c.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap(), nil
		}
	}
	return netip.Addr{}, errors.New("options:local_ip is missing, and there is no default route to take it from")
}

// linkMTU is the MTU of the link with an address; that of Ethernet if there is none.
func linkMTU(a netip.Addr) int {
	links, _ := net.Interfaces()
	for _, l := range links {
		addrs, _ := l.Addrs()
		if slices.ContainsFunc(addrs, func(of net.Addr) bool { return strings.HasPrefix(of.String(), a.String()+"/") }) {
			return l.MTU
		}
	}
	const ethernet = 1500
	return ethernet
}
