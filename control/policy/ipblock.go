package policy

import (
	"net/netip"
	"slices"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/tables"
)

// Prefixes as addresses of rules. A match cannot express an exception, so a block with
// exceptions becomes the fewest prefixes that cover the rest.

// hostAddress is the rule address of one IP address.
func hostAddress(ip netip.Addr) tables.Address {
	return tables.Address{Prefix: netip.PrefixFrom(ip, ip.BitLen())}
}

// hasFamily reports whether an address belongs to one of the families.
func hasFamily(families []tables.Family, ip netip.Addr) bool {
	f := tables.IPv4
	if ip.Is6() && !ip.Is4In6() {
		f = tables.IPv6
	}
	return slices.Contains(families, f)
}

// blockAddresses returns the disjoint prefixes of a block.
func blockAddresses(b cluster.IPBlock, families []tables.Family) (all []tables.Address) {
	if !hasFamily(families, b.CIDR.Addr()) {
		return nil
	}
	for _, p := range subtract(b.CIDR, b.Except) {
		all = append(all, tables.Address{Prefix: p})
	}
	return all
}

// subtract returns the fewest prefixes that hold the addresses of p outside all exceptions. It
// halves p until no exception overlaps a half. So the depth is at most the address length, and
// each exception adds at most as many prefixes.
func subtract(p netip.Prefix, except []netip.Prefix) []netip.Prefix {
	var inside []netip.Prefix
	for _, e := range except {
		if e.Bits() <= p.Bits() && e.Contains(p.Addr()) {
			return nil
		}
		if p.Overlaps(e) {
			inside = append(inside, e)
		}
	}
	if len(inside) == 0 {
		return []netip.Prefix{p}
	}
	low, high := halves(p)
	return append(subtract(low, inside), subtract(high, inside)...)
}

// halves returns the two prefixes that are one bit longer.
func halves(p netip.Prefix) (low, high netip.Prefix) {
	bits := p.Bits()
	b := p.Addr().AsSlice()
	b[bits/8] |= 0x80 >> (bits % 8)
	upper, _ := netip.AddrFromSlice(b)
	return netip.PrefixFrom(p.Addr(), bits+1), netip.PrefixFrom(upper, bits+1)
}
