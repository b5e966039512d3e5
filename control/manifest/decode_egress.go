package manifest

import (
	"math"
	"net/netip"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/antrail/antrail/control/cluster"
)

// Egresses, their pools of addresses, and TrafficControls.

// podSet reads an appliedTo with at least one selector.
func (c *check) podSet(at *field.Path, in podSetManifest) cluster.PodSet {
	if in.PodSelector == nil && in.NamespaceSelector == nil {
		c.required(at, "must have a podSelector or a namespaceSelector")
	}
	return cluster.PodSet{
		Pods:       c.selector(at.Child("podSelector"), in.PodSelector),
		Namespaces: c.selector(at.Child("namespaceSelector"), in.NamespaceSelector),
	}
}

func decodeEgress(c *check, in *egressManifest) cluster.Object {
	s := &in.Spec
	e := &cluster.Egress{
		Meta:      c.meta,
		AppliedTo: c.podSet(specAt.Child("appliedTo"), s.AppliedTo),
		Node:      in.Status.EgressNode,
		Pools:     decodePools(c, s.ExternalIPPool, s.ExternalIPPools),
	}
	ips, ipsAt := s.EgressIPs, specAt.Child("egressIPs")
	if s.EgressIP != "" {
		if len(ips) > 0 {
			c.forbidden(ipsAt, "may not be set together with egressIP")
		}
		ips, ipsAt = []string{s.EgressIP}, specAt.Child("egressIP")
	}
	if len(ips) == 0 && len(e.Pools) == 0 {
		c.required(specAt, "must have an egressIP or an externalIPPool")
	}
	e.Addr = decodeEgressAddr(c, ipsAt, ips)
	if in.Status.EgressIP != "" {
		e.Addr = c.addr(statusAt.Child("egressIP"), in.Status.EgressIP)
	}
	if b := s.Bandwidth; b != nil {
		at := specAt.Child("bandwidth")
		e.Bandwidth = cluster.Bandwidth{
			Rate:  c.kilobits(at.Child("rate"), b.Rate, 1),
			Burst: c.kilobits(at.Child("burst"), b.Burst, minBurst),
		}
	}
	return e
}

// minBurst is the smallest burst of an Egress, in kilobits. A Pod's kernel may send a frame of 64
// KiB at once, and a smaller burst would never let it pass.
const minBurst = 525

// kilobits reads a quantity of bits, such as 800M.
func (c *check) kilobits(at *field.Path, s string, least int64) uint32 {
	q, err := resource.ParseQuantity(s)
	if err != nil {
		c.invalid(at, Clip(s), "is not a number of bits such as 800M or 2G")
		return 0
	}
	n := q.Value() / 1000
	if n < least || n > math.MaxUint32 {
		c.invalid(at, Clip(s), "must be between %d000 and %d000 bits", least, uint32(math.MaxUint32))
		return 0
	}
	return uint32(n)
}

// decodeEgressAddr returns the first given address. An entry may be empty: the pool with its index
// fills it.
func decodeEgressAddr(c *check, at *field.Path, ips []string) (first netip.Addr) {
	for i, s := range ips {
		if s == "" {
			continue
		}
		at := at
		if len(ips) > 1 {
			at = at.Index(i)
		}
		a := c.addr(at, s)
		c.remote(at, a)
		if !first.IsValid() {
			first = a
		}
	}
	return first
}

func decodePools(c *check, pool string, pools []string) []string {
	switch {
	case pool != "" && len(pools) > 0:
		c.forbidden(specAt.Child("externalIPPools"), "may not be set together with externalIPPool")
	case pool != "":
		return []string{c.name(specAt.Child("externalIPPool"), pool)}
	}
	for i, p := range pools {
		c.name(specAt.Child("externalIPPools").Index(i), p)
	}
	return pools
}

func decodeExternalIPPool(c *check, in *externalIPPoolManifest) cluster.Object {
	p := &cluster.ExternalIPPool{
		Meta:  c.meta,
		Nodes: unless(c.selector(specAt.Child("nodeSelector"), &in.Spec.NodeSelector), cluster.Selector{}),
	}
	for i, r := range in.Spec.IPRanges {
		at := specAt.Child("ipRanges").Index(i)
		p.Ranges = append(p.Ranges, c.ipRange(at, r.CIDR, r.Start, r.End))
	}
	c.disjoint(p.Ranges)
	if in.Spec.SubnetInfo != nil {
		c.forbidden(specAt.Child("subnetInfo"), "antrail has no addresses of Egresses in a subnet of their own; remove the field, and use addresses of the Nodes' subnet")
	}
	return p
}

// ipRange reads a range, given as a prefix or by its first and last address.
func (c *check) ipRange(at *field.Path, cidr, start, end string) cluster.IPRange {
	if cidr != "" {
		if start != "" || end != "" {
			c.forbidden(at, "cidr may not be set together with start and end")
		}
		prefix := c.prefix(at.Child("cidr"), cidr)
		if !prefix.IsValid() {
			return cluster.IPRange{}
		}
		return cluster.IPRange{First: prefix.Addr(), Last: lastAddr(prefix)}
	}
	r := cluster.IPRange{First: c.addr(at.Child("start"), start), Last: c.addr(at.Child("end"), end)}
	if r.First.IsValid() && r.Last.IsValid() && (r.First.Is4() != r.Last.Is4() || r.Last.Less(r.First)) {
		c.invalid(at, start+"-"+end, "ends before it begins or in another family")
	}
	return r
}

// lastAddr is the last address of a prefix.
func lastAddr(p netip.Prefix) netip.Addr {
	raw := p.Addr().AsSlice()
	for i := p.Bits(); i < len(raw)*8; i++ {
		raw[i/8] |= 1 << (7 - i%8)
	}
	last, _ := netip.AddrFromSlice(raw)
	return last
}

// maxRanges is the limit of a pool's ranges, because each is compared with each.
const maxRanges = 1000

func (c *check) disjoint(ranges []cluster.IPRange) {
	at := specAt.Child("ipRanges")
	if len(ranges) > maxRanges {
		c.faults = append(c.faults, field.TooMany(at, len(ranges), maxRanges))
		return
	}
	for i, a := range ranges {
		for j, b := range ranges[:i] {
			if a.First.Compare(b.Last) <= 0 && b.First.Compare(a.Last) <= 0 && a.First.IsValid() && b.First.IsValid() {
				c.invalid(at.Index(i), a.First.String()+"-"+a.Last.String(), "overlaps with the range of index %d", j)
			}
		}
	}
}

func decodeTrafficControl(c *check, in *trafficControlManifest) cluster.Object {
	s := &in.Spec
	t := &cluster.TrafficControl{
		Meta:      c.meta,
		AppliedTo: c.podSet(specAt.Child("appliedTo"), s.AppliedTo),
		Direction: oneOf(c, specAt.Child("direction"), cluster.TrafficDirection(s.Direction),
			cluster.DirectionIngress, cluster.DirectionEgress, cluster.DirectionBoth),
		Redirect:   oneOf(c, specAt.Child("action"), s.Action, "Mirror", "Redirect") == "Redirect",
		TargetPort: c.trafficPort(specAt.Child("targetPort"), &s.TargetPort),
	}
	if s.ReturnPort == nil {
		return t
	}
	at := specAt.Child("returnPort")
	if !t.Redirect {
		c.forbidden(at, "may be set with action Redirect only")
	}
	if s.ReturnPort.ERSPAN != nil {
		c.forbidden(at.Child("erspan"), "nothing comes back from ERSPAN")
	}
	back := c.trafficPort(at, s.ReturnPort)
	t.ReturnPort = &back
	return t
}

func (c *check) trafficPort(at *field.Path, in *trafficPortManifest) cluster.TrafficPort {
	c.oneMode(at, map[string]bool{
		"ovsInternal": in.OVSInternal != nil, "device": in.Device != nil, "geneve": in.GENEVE != nil,
		"vxlan": in.VXLAN != nil, "gre": in.GRE != nil, "erspan": in.ERSPAN != nil,
	})
	switch {
	case in.OVSInternal != nil:
		return cluster.TrafficPort{Type: cluster.OVSInternalPort, Name: c.linkName(at.Child("ovsInternal", "name"), in.OVSInternal.Name)}
	case in.Device != nil:
		return cluster.TrafficPort{Type: cluster.DevicePort, Name: c.linkName(at.Child("device", "name"), in.Device.Name)}
	case in.GENEVE != nil:
		return c.udpTunnel(at.Child("geneve"), cluster.GenevePort, in.GENEVE)
	case in.VXLAN != nil:
		return c.udpTunnel(at.Child("vxlan"), cluster.VXLANPort, in.VXLAN)
	case in.GRE != nil:
		at := at.Child("gre")
		return cluster.TrafficPort{Type: cluster.GREPort, RemoteIP: c.addr(at.Child("remoteIP"), in.GRE.RemoteIP),
			Key: uint32(c.within(at.Child("key"), in.GRE.Key, 1<<31-1))}
	case in.ERSPAN != nil:
		return c.erspan(at.Child("erspan"), in.ERSPAN)
	}
	return cluster.TrafficPort{}
}

func (c *check) udpTunnel(at *field.Path, t cluster.TrafficPortType, in *udpTunnelManifest) cluster.TrafficPort {
	return cluster.TrafficPort{
		Type:            t,
		RemoteIP:        c.addr(at.Child("remoteIP"), in.RemoteIP),
		Key:             uint32(c.within(at.Child("vni"), in.VNI, 1<<24-1)),
		DestinationPort: c.optionalPort(at.Child("destinationPort"), in.DestinationPort),
	}
}

func (c *check) erspan(at *field.Path, in *erspanManifest) cluster.TrafficPort {
	if in.Version != 1 && in.Version != 2 {
		c.invalid(at.Child("version"), in.Version, "must be 1 or 2")
	}
	return cluster.TrafficPort{
		Type:     cluster.ERSPANPort,
		RemoteIP: c.addr(at.Child("remoteIP"), in.RemoteIP),
		Key:      uint32(c.within(at.Child("sessionID"), in.SessionID, 1023)),
		ERSPAN: &cluster.ERSPAN{
			Version:    uint8(in.Version),
			Index:      uint32(c.within(at.Child("index"), in.Index, 1<<20-1)),
			Direction:  uint8(c.within(at.Child("dir"), in.Dir, 1)),
			HardwareID: uint8(c.within(at.Child("hardwareID"), in.HardwareID, 63)),
		},
	}
}

// within checks an optional number from 0 to last.
func (c *check) within(at *field.Path, n *int32, last int32) int32 {
	if n == nil {
		return 0
	}
	if *n < 0 || *n > last {
		c.invalid(at, *n, "must be between 0 and %d, inclusive", last)
	}
	return *n
}

// maxLinkName is the length of a Linux interface name, without the ending zero.
const maxLinkName = 15

func (c *check) linkName(at *field.Path, name string) string {
	if name == "" || len(name) > maxLinkName {
		c.invalid(at, Clip(name), "must have 1 to %d characters", maxLinkName)
	}
	return name
}
