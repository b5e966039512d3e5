package tables

import (
	"fmt"
	"net/netip"
	"slices"
)

// EncapMode is how packets go to Pods of other Nodes (Antrea's trafficEncapMode).
type EncapMode uint8

// The modes.
const (
	Encap   EncapMode = iota // all through the tunnel
	NoEncap                  // all by the gateway and the underlay's routes; there is no tunnel port
	Hybrid                   // to Nodes in TransportCIDRs by the gateway, to others through the tunnel
)

var encapModes = [...]string{Encap: "encap", NoEncap: "noEncap", Hybrid: "hybrid"}

// EncapModeNamed is the mode with a name as in a configuration; the empty name is
// encap's.
func EncapModeNamed(name string) (EncapMode, error) {
	if name == "" {
		return Encap, nil
	}
	if i := slices.Index(encapModes[:], name); i >= 0 {
		return EncapMode(i), nil
	}
	return 0, fmt.Errorf("%q is none of encap, noEncap and hybrid", name)
}

// String is the name as in a configuration.
func (m EncapMode) String() string { return encapModes[m] }

// NextHop is the address to which packets for Pods of a Node go without a tunnel,
// those of the given address's family; not valid where they go through the tunnel,
// or nowhere. nodeIPs are the Node's addresses, subnets those that hybrid mode
// goes by.
func (m EncapMode) NextHop(nodeIPs []netip.Addr, subnets []netip.Prefix, pods netip.Addr) netip.Addr {
	for _, a := range nodeIPs {
		if m == Encap || familyOf(a) != familyOf(pods) {
			continue
		}
		if m == NoEncap || slices.ContainsFunc(subnets, func(s netip.Prefix) bool { return s.Contains(a) }) {
			return a
		}
	}
	return netip.Addr{}
}

// hasTunnel says whether there is a tunnel port.
func hasTunnel(p *Pipeline) bool { return p.c.Encap != NoEncap }
