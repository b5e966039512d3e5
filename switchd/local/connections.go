package local

import (
	"iter"
	"net/netip"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/door"
)

// connections implements the requests about a switch's connections.
type connections struct{ sw *Switch }

// Connections implements door.Switch.
func (s *Switch) Connections() door.Connections { return &connections{s} }

// Stats implements door.Connections, as the methods below do.
func (c *connections) Stats() conntrack.Stats { return c.sw.table.Stats() }

// Zones are the counts and limits of zones.
func (c *connections) Zones() []conntrack.ZoneLimit { return c.sw.table.Zones() }

// Limits are the limits of zones.
func (c *connections) Limits() (l door.ZoneLimits) {
	l.Default, l.Own = c.sw.table.Limits()
	return l
}

// Ports are the connections of ports.
func (c *connections) Ports() []conntrack.PortStats { return c.sw.table.Ports() }

// Dump are the connections that match f.
func (c *connections) Dump(f conntrack.Filter) iter.Seq[conntrack.Conn] { return c.sw.table.Dump(f) }

// Flush removes the connections that match f.
func (c *connections) Flush(f conntrack.Filter) int { return c.sw.table.Purge(f.Takes) }

// Shield stops endpoints from beginning connections by their replies.
func (c *connections) Shield(endpoints []netip.AddrPort, until int64) {
	c.sw.table.Shield(endpoints, until)
}

// Purge removes the connections of addresses and paths.
func (c *connections) Purge(p *door.Purge) {
	addrs, paths := map[netip.Addr]bool{}, map[door.Path]bool{}
	for _, a := range p.Addrs {
		addrs[a] = true
	}
	for _, w := range p.Paths {
		paths[w] = true
	}
	c.sw.table.Purge(func(c *conntrack.Conn) bool {
		return addrs[c.Orig.Src] || addrs[c.Orig.Dst] || addrs[c.Reply.Src] || addrs[c.Reply.Dst] || wentPath(c, paths)
	})
}

// wentPath reports whether a connection took one of the paths.
func wentPath(c *conntrack.Conn, paths map[door.Path]bool) bool {
	p := door.Path{
		Proto:    c.Orig.Proto,
		Service:  netip.AddrPortFrom(c.Orig.Dst, c.Orig.DstPort),
		Endpoint: netip.AddrPortFrom(c.Reply.Src, c.Reply.SrcPort),
	}
	if paths[p] {
		return true
	}
	p.Service = netip.AddrPortFrom(netip.Addr{}, c.Orig.DstPort)
	return paths[p]
}
