package control

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/ledger"
	"github.com/antrail/antrail/control/numbers"
	"github.com/antrail/antrail/control/store"
	"github.com/antrail/antrail/tables"
)

// Services: the addresses of each port, and the groups that choose an endpoint.
//
// A port has up to two groups for each family. The local group has the endpoints on this Node, the cluster
// group all endpoints that this Node may use. services_endpoints.go chooses them. The Service's traffic
// policies decide which group an address uses:
//
//	address         policy Cluster   policy Local
//	cluster IP      cluster          local
//	external        cluster          local; cluster for packets from this Node
//
// A group keeps its id as long as it exists. So endpoints come and go without a change of the entries that
// name the group. Established connections keep their endpoint, because they follow their connection
// tracking entry. A group without endpoints rejects connections.

// serviceBuilder makes the entries and groups of Services.
type serviceBuilder struct {
	ids *numbers.Allocator[groupOwner]
	// owners are the owners of ids by Service.
	owners map[cluster.Key]map[groupOwner]bool
	wanted map[cluster.Key][]uint32 // groups that Services want, ascending
}

// groupOwner identifies a group.
type groupOwner struct {
	service cluster.Key
	port    string // its name, because its number may change
	proto   cluster.Protocol
	family  tables.Family
	kind    groupKind
}

// groupKind is which of a port's two groups a group is.
type groupKind uint8

const (
	localGroup groupKind = iota
	clusterGroup
)

func newGroupNumbers() *numbers.Allocator[groupOwner] {
	return numbers.NewAllocator[groupOwner](firstServiceGroup, lastGroup)
}

func newServiceBuilder() *serviceBuilder {
	return &serviceBuilder{newGroupNumbers(), map[cluster.Key]map[groupOwner]bool{}, map[cluster.Key][]uint32{}}
}

func (b *serviceBuilder) build(c *change, w *wants) {
	for _, k := range b.affected(c) {
		b.service(c.now, k, w)
	}
}

// affected returns the Services that a change concerns: those with a changed object or EndpointSlice. If
// the zone or a Node's addresses changed, it returns all.
func (b *serviceBuilder) affected(c *change) []cluster.Key {
	all := *c
	all.all = c.all || c.was != nil && (c.was.zone != c.now.zone || !maps.Equal(c.was.nodeIPs, c.now.nodeIPs))
	keys := affected(&all, cluster.KindService, c.now.Services)
	for _, k := range c.keys {
		if k.Kind != cluster.KindEndpointSlice {
			continue
		}
		for _, v := range []*view{c.was, c.now} {
			if v != nil && v.EndpointSlices[k] != nil {
				of := v.EndpointSlices[k].Service
				keys = append(keys, cluster.Key{Kind: cluster.KindService, Namespace: of.Namespace, Name: of.Name})
			}
		}
	}
	return c.now.sortByPlace(keys)
}

// settled frees the group ids that a Service no longer uses.
func (b *serviceBuilder) settled(p ledger.Part, d *ledger.Desired) {
	used := map[uint32]bool{}
	if d != nil {
		for _, g := range d.Groups {
			used[g.Group.ID] = true
		}
	}
	for o := range b.owners[p.Object] {
		if !used[b.ids.Assigned[o]] {
			b.ids.Free(o)
			delete(b.owners[p.Object], o)
		}
	}
	if len(b.owners[p.Object]) == 0 {
		delete(b.owners, p.Object)
	}
}

// groupsOf returns the ids of the groups that a Service wants, in ascending order. Policies that name the
// Service match them.
func (b *serviceBuilder) groupsOf(n cluster.Name) []uint32 {
	return b.wanted[cluster.Key{Kind: cluster.KindService, Namespace: n.Namespace, Name: n.Name}]
}

// service makes the entries and groups of one Service.
func (b *serviceBuilder) service(v *view, k cluster.Key, w *wants) {
	part := ledger.Part{Object: k}
	svc := v.Services[k]
	delete(b.wanted, k)
	if svc == nil {
		w.want(part, nil)
		return
	}
	if why := v.unserved(svc); why != "" {
		w.want(part, nil)
		w.ignore(k, why)
		return
	}
	s := serviceWants{b: b, v: v, svc: svc, d: &ledger.Desired{}}
	for i := range svc.Ports {
		if !s.port(i) {
			w.refuse(k, "spec.ports[%d]: all group ids are taken", i)
			return
		}
	}
	for _, g := range s.d.Groups {
		b.wanted[k] = append(b.wanted[k], g.Group.ID)
	}
	slices.Sort(b.wanted[k])
	w.fine(k)
	if len(s.d.Entries) == 0 {
		w.ignore(k, "none of its addresses is served on this Node")
	}
	w.want(part, s.d)
}

// unserved is the reason why a Service has nothing in the switch, or "".
func (v *view) unserved(svc *cluster.Service) string {
	switch {
	case !v.config.Features.Proxy:
		return "the feature AntreaProxy is off"
	case svc.Headless:
		return "headless: clients connect to the endpoints themselves"
	case svc.Type == cluster.ExternalNameService:
		return "ExternalName: it is only a DNS name"
	case svc.ServiceProxyName != "":
		return "served by " + svc.ServiceProxyName
	}
	return ""
}

// serviceWants collects the entries and groups of one Service.
type serviceWants struct {
	b   *serviceBuilder
	v   *view
	svc *cluster.Service
	d   *ledger.Desired
}

// port makes everything of one port. It returns false if no group id is free.
func (s *serviceWants) port(i int) bool {
	for _, f := range familiesOf(s.v) {
		addrs := s.addresses(i, f)
		if len(addrs) > 0 && !s.family(i, f, addrs) {
			return false
		}
	}
	return true
}

// address is one address of a port, for its entries.
type address struct {
	tables.ServiceAddress
	field string // in the manifest, relative to the port
}

// addresses returns the addresses of a port in one family, without groups.
func (s *serviceWants) addresses(i int, f tables.Family) []address {
	p := &s.svc.Ports[i]
	base := tables.ServiceAddress{
		Proto: uint8(p.Protocol), Family: f, Port: p.Port, AffinitySeconds: uint16(min(s.svc.AffinitySeconds, maxAffinity)),
	}
	var all []address
	list := func(field string, addrs []netip.Addr, value tables.ServiceAddress) {
		for _, a := range addrs {
			if tableFamily(a) == f {
				value.Addr = a
				all = append(all, address{value, field})
			}
		}
	}
	list(" at spec.clusterIPs", s.svc.ClusterIPs, base)
	base.External = true
	if s.v.config.Features.ProxyAll {
		all = append(all, s.nodePort(p, base)...)
		base.DSR = s.dsr(f)
		list(" at spec.externalIPs", s.svc.ExternalIPs, base)
	}
	base.DSR = s.dsr(f)
	base.SourceRanges = ofFamily(s.svc.SourceRanges, f)
	list(" at status.loadBalancer.ingress", s.svc.LoadBalancerIPs, base)
	return all
}

// nodePort is the port's address on every Node, if it has one in the family.
func (s *serviceWants) nodePort(p *cluster.ServicePort, base tables.ServiceAddress) []address {
	if p.NodePort == 0 || !s.hasFamily(base.Family) {
		return nil
	}
	base.Port = p.NodePort
	return []address{{base, ".nodePort"}}
}

// hasFamily reports whether a Service serves a family of this Node's Pods. The Service's families are those
// of its cluster IPs, or else its ipFamilies, or else all.
func (s *serviceWants) hasFamily(f tables.Family) bool {
	if !s.v.hasFamily(f) {
		return false
	}
	if len(s.svc.ClusterIPs) > 0 {
		return slices.ContainsFunc(s.svc.ClusterIPs, func(a netip.Addr) bool { return tableFamily(a) == f })
	}
	return len(s.svc.Families) == 0 || slices.Contains(s.svc.Families, int(f))
}

// familiesOf returns the families of this Node's Pods.
func familiesOf(v *view) (all []tables.Family) {
	for _, f := range []tables.Family{tables.IPv4, tables.IPv6} {
		if v.hasFamily(f) {
			all = append(all, f)
		}
	}
	return all
}

// hasFamily reports whether this Node's Pods have addresses of a family.
func (v *view) hasFamily(f tables.Family) bool {
	return slices.ContainsFunc(v.config.PodCIDRs, func(p netip.Prefix) bool { return tableFamily(p.Addr()) == f })
}

// dsr reports whether the endpoint itself answers external connections. The tunnel carries that for IPv4
// only, and local endpoints do not need it.
func (s *serviceWants) dsr(f tables.Family) bool {
	if !s.v.config.Features.DSR || f != tables.IPv4 || s.svc.ExternalLocal {
		return false
	}
	if s.svc.LoadBalancerMode == cluster.DefaultMode {
		return s.v.NodeConfig(s.v.node).DefaultDSR
	}
	return s.svc.LoadBalancerMode == cluster.DSRMode
}

// family makes the groups and entries of a port in one family. It returns false if no group id is free.
func (s *serviceWants) family(i int, f tables.Family, addrs []address) bool {
	sets := s.v.chooseEndpoints(s.svc, i, f, trafficOf(s.svc, addrs))
	var ids [2]uint32 // by groupKind; the local one is first, as in Antrea
	for kind, set := range sets.groups() {
		if set == nil {
			continue
		}
		id, ok := s.group(i, f, groupKind(kind), *set)
		if !ok {
			return false
		}
		ids[kind] = id
	}
	s.entries(i, addrs, ids)
	if s.v.config.Features.ProxyAll {
		askNode(&s.d.Node, addrs)
	}
	s.endpoints(i, sets, addrs)
	return true
}

// group makes one group.
func (s *serviceWants) group(i int, f tables.Family, kind groupKind, endpoints []endpoint) (uint32, bool) {
	p := &s.svc.Ports[i]
	o := groupOwner{s.svc.Key, p.Name, p.Protocol, f, kind}
	id, ok := s.b.ids.Assign(o)
	if !ok {
		return 0, false
	}
	if s.b.owners[s.svc.Key] == nil {
		s.b.owners[s.svc.Key] = map[groupOwner]bool{}
	}
	s.b.owners[s.svc.Key][o] = true
	g := tables.EndpointGroup{ID: id, Affinity: s.svc.AffinitySeconds > 0}
	for _, e := range endpoints {
		g.Endpoints = append(g.Endpoints, e.value(p.Protocol))
	}
	s.d.AddGroup(ledger.Origin{Object: s.svc.Key, Field: portField(i, "")}, s.v.pipeline.EndpointGroup(g))
	return id, true
}

// entries makes the entries of each address of a port.
func (s *serviceWants) entries(i int, addrs []address, ids [2]uint32) {
	for _, a := range addrs {
		local := s.svc.InternalLocal
		if a.External {
			local = s.svc.ExternalLocal
		}
		a.Group = ids[clusterGroup]
		if local {
			a.Group = ids[localGroup]
		}
		if local && a.External {
			a.ClusterGroup = ids[clusterGroup]
		}
		if a.DSR {
			a.LocalGroup = ids[localGroup]
		}
		o := ledger.Origin{Object: s.svc.Key, Field: portField(i, a.field)}
		s.d.AddEntries(o, s.v.pipeline.ServiceAddress(a.ServiceAddress)...)
	}
}

// endpoints makes the entries that translate to endpoints. All Services with an endpoint want the same
// entries for it.
func (s *serviceWants) endpoints(i int, sets endpointSets, addrs []address) {
	proto := s.svc.Ports[i].Protocol
	o := ledger.Origin{Object: s.svc.Key, Field: portField(i, ".targetPort")}
	for _, e := range sets.all() {
		s.d.AddEntries(o, s.v.pipeline.Endpoint(e.value(proto))...)
		if proto != cluster.UDP {
			continue
		}
		for _, a := range addrs {
			s.d.Paths = append(s.d.Paths, ledger.Path{Proto: proto, Service: netip.AddrPortFrom(a.Addr, a.Port), Endpoint: e.at})
		}
	}
}

// maxAffinity is the longest affinity of an entry, because hard_timeout has 16 bits. Kubernetes allows up
// to 86400 seconds. Longer times are cut, as in Antrea.
const maxAffinity = 65535

func portField(i int, more string) string { return fmt.Sprintf("spec.ports[%d]", i) + more }

func tableFamily(a netip.Addr) tables.Family { return tables.Family(store.FamilyOf(a)) }

func ofFamily(all []netip.Prefix, f tables.Family) (some []netip.Prefix) {
	for _, p := range all {
		if tableFamily(p.Addr()) == f {
			some = append(some, p)
		}
	}
	return some
}

// firstServiceGroup is the lowest group id of a Service. Lower ids are the pipeline's: 1 to 4 log policies;
// 5 and 6 are multicast policies in Antrea.
const firstServiceGroup = 9

// lastGroup is the highest group id of OpenFlow (OFPG_MAX).
const lastGroup = 0xffffff00

// askNode adds a Service's external addresses and node ports to its NodeSide. ClusterIPs are in the Service
// range.
func askNode(n *ledger.NodeSide, all []address) {
	for _, a := range all {
		switch {
		case !a.External:
		case a.Addr.IsValid():
			n.External = append(n.External, a.Addr)
		default:
			n.NodePorts = append(n.NodePorts, ledger.NodePort{Proto: cluster.Protocol(a.Proto), Family: uint8(a.Family), Port: a.Port})
		}
	}
}
