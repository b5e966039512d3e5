package agent

import (
	"net/netip"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/dataplane"
)

// installer is the switch as control installs into it.
type installer struct{ *pipeline }

// Apply implements control.Installer.
func (i installer) Apply(b *control.Bundle) error {
	return i.sw.Apply(&dataplane.Bundle{
		Names: b.Names, First: b.First, Add: b.Add, Delete: b.Delete,
		Groups: b.Groups, Meters: b.Meters, DeleteGroups: b.DeleteGroups, DeleteMeters: b.DeleteMeters,
	})
}

// Purge implements control.Installer.
func (i installer) Purge(all []control.Purge) {
	addrs, paths := map[netip.Addr]bool{}, map[control.Path]bool{}
	for _, p := range all {
		if p.Addr.IsValid() {
			addrs[p.Addr] = true
		} else {
			paths[p.Path] = true
		}
	}
	i.ct.Purge(func(c *conntrack.Conn) bool {
		return addrs[c.Orig.Src] || addrs[c.Orig.Dst] || addrs[c.Reply.Src] || addrs[c.Reply.Dst] || wentPath(c, paths)
	})
}

// wentPath says whether a connection went one of the paths: to a Service's
// address and port, or to the port of any address, and on to the endpoint.
func wentPath(c *conntrack.Conn, paths map[control.Path]bool) bool {
	p := control.Path{
		Proto:    control.Protocol(c.Orig.Proto),
		Service:  netip.AddrPortFrom(c.Orig.Dst, c.Orig.DstPort),
		Endpoint: netip.AddrPortFrom(c.Reply.Src, c.Reply.SrcPort),
	}
	if paths[p] {
		return true
	}
	p.Service = netip.AddrPortFrom(netip.Addr{}, c.Orig.DstPort)
	return paths[p]
}
