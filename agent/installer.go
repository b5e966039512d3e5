package agent

import (
	"fmt"
	"net/netip"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/flow"
)

// installer is the switch as control installs into it. To the entries of the
// objects it adds those that the gateway asks for, which is a tap: see own.
type installer struct {
	*pipeline
	gateways []netip.Prefix // the gateway's addresses

	own []*flow.Entry // in the switch
}

// Apply implements control.Installer.
func (i *installer) Apply(b *control.Bundle) error {
	d := &dataplane.Bundle{
		Names: b.Names, First: b.First, Add: b.Add, Delete: b.Delete,
		Groups: b.Groups, Meters: b.Meters, DeleteGroups: b.DeleteGroups, DeleteMeters: b.DeleteMeters,
	}
	own := i.own
	if b.Names != nil {
		var err error
		if own, err = ownEntries(i.gateways, b.Names); err != nil {
			return err
		}
		d.Delete = append(without(i.own, own), b.Delete...)
		d.Add = append(own[:len(own):len(own)], b.Add...)
	}
	if err := i.sw.Apply(d); err != nil {
		return err
	}
	i.own = own
	return nil
}

// ownEntries let what the Node itself sends to its pods, such as the kubelet's
// probes, pass ingress policies. Open vSwitch's internal port knows such packets
// by the mark that the host gave them; a tap carries no marks, so they are known
// by the gateway's address.
func ownEntries(gateways []netip.Prefix, names *flow.Names) ([]*flow.Entry, error) {
	const at, next = "IngressSecurityClassifier", "ConntrackCommit"
	var own []*flow.Entry
	if _, ok := names.TableID(at); !ok {
		return nil, nil
	}
	for _, g := range gateways {
		ip, src := "ip", "nw_src"
		if g.Addr().Is6() {
			ip, src = "ipv6", "ipv6_src"
		}
		text := fmt.Sprintf("table=%s, priority=210,ct_state=-rpl+trk,%s,reg0=0x2/0xf,%s=%s actions=goto_table:%s", at, ip, src, g.Addr(), next)
		e, err := flow.ParseEntry(text, names)
		if err != nil {
			return nil, err
		}
		own = append(own, e)
	}
	return own, nil
}

// without are the entries whose identity none of the others has.
func without(entries, others []*flow.Entry) []*flow.Entry {
	kept := map[flow.Identity]bool{}
	for _, e := range others {
		kept[e.Identity()] = true
	}
	var rest []*flow.Entry
	for _, e := range entries {
		if !kept[e.Identity()] {
			rest = append(rest, e)
		}
	}
	return rest
}

// Purge implements control.Installer.
func (i *installer) Purge(all []control.Purge) {
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
