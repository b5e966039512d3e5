package control

import (
	"net/netip"
	"slices"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/tables"
)

// The endpoints of a Service that this Node uses, by the rules of kube-proxy's CategorizeEndpoints, which
// Antrea follows:
//
//   - cluster: the ready endpoints. With topology hints, only those with a hint for here, if every ready
//     endpoint has hints and one of them is for here. If no endpoint is ready, the terminating ones that
//     still serve.
//   - local: the ready endpoints on this Node, or else the terminating ones on this Node that still serve.
//
// A set that no address uses is nil and has no group. A set that is used may be empty; its group rejects
// connections.

// endpoint is an endpoint of one port of a Service.
type endpoint struct {
	at    netip.AddrPort
	local bool // on this Node
	host  bool // the address is a Node's
	of    *cluster.Endpoint
}

// value is the endpoint as a value for the tables.
func (e *endpoint) value(proto cluster.Protocol) tables.Endpoint {
	return tables.Endpoint{Proto: uint8(proto), Addr: e.at, Local: e.local, Host: e.host}
}

// endpointSets are the two sets of a port; nil for an unused one.
type endpointSets struct{ local, cluster *[]endpoint }

// groups returns the sets by groupKind.
func (s endpointSets) groups() [2]*[]endpoint {
	return [2]*[]endpoint{localGroup: s.local, clusterGroup: s.cluster}
}

// all returns the endpoints of both sets, without duplicates, in order.
func (s endpointSets) all() []endpoint {
	var all []endpoint
	for _, set := range s.groups() {
		if set != nil {
			all = append(all, *set...)
		}
	}
	slices.SortFunc(all, compareEndpoints)
	return slices.CompactFunc(all, func(a, b endpoint) bool { return a.at == b.at })
}

func compareEndpoints(a, b endpoint) int { return a.at.Compare(b.at) }

// traffic says which sets the addresses of a port use.
type traffic struct{ local, cluster bool }

// trafficOf derives the traffic from the Service's policies and addresses. With external addresses, the
// cluster's endpoints are used even with local policies: packets from this Node use them.
func trafficOf(svc *cluster.Service, addrs []address) traffic {
	external := slices.ContainsFunc(addrs, func(a address) bool { return a.External })
	dsr := slices.ContainsFunc(addrs, func(a address) bool { return a.DSR })
	return traffic{
		local:   svc.InternalLocal || svc.ExternalLocal && external || dsr,
		cluster: !svc.InternalLocal || external,
	}
}

// chooseEndpoints makes the sets of a port in one family.
func (v *view) chooseEndpoints(svc *cluster.Service, port int, f tables.Family, t traffic) endpointSets {
	all := v.endpoints(svc, &svc.Ports[port], f)
	var sets endpointSets
	if t.local {
		sets.local = serving(all, func(e *endpoint) bool { return e.local })
	}
	if t.cluster {
		sets.cluster = serving(all, v.hinted(svc, all))
	}
	return sets
}

// serving returns the wanted endpoints that are ready. If there are none, it returns the terminating ones
// that still serve.
func serving(all []endpoint, wanted func(*endpoint) bool) *[]endpoint {
	set := []endpoint{}
	for i := range all {
		if all[i].of.Ready && wanted(&all[i]) {
			set = append(set, all[i])
		}
	}
	if len(set) > 0 {
		return &set
	}
	for i := range all {
		e := all[i].of
		if e.Serving && e.Terminating && wanted(&all[i]) {
			set = append(set, all[i])
		}
	}
	return &set
}

// hinted returns a function that reports whether the hints allow an endpoint here. Hints count if all ready
// endpoints have them and one of them is for here. They never exclude a terminating endpoint.
func (v *view) hinted(svc *cluster.Service, all []endpoint) func(*endpoint) bool {
	anywhere := func(*endpoint) bool { return true }
	if !svc.TopologyHints {
		return anywhere
	}
	byNode := func(e *endpoint) ([]string, string) { return e.of.ForNodes, v.node }
	byZone := func(e *endpoint) ([]string, string) { return e.of.ForZones, v.zone }
	for _, hints := range []func(*endpoint) ([]string, string){byNode, byZone} {
		if hintsCount(all, hints) {
			return func(e *endpoint) bool {
				for_, here := hints(e)
				return !e.of.Ready || slices.Contains(for_, here)
			}
		}
	}
	return anywhere
}

// hintsCount reports whether every ready endpoint has hints of a kind, and one of them is for here.
func hintsCount(all []endpoint, hints func(*endpoint) ([]string, string)) bool {
	some := false
	for i := range all {
		if !all[i].of.Ready {
			continue
		}
		for_, here := hints(&all[i])
		if len(for_) == 0 || here == "" {
			return false
		}
		some = some || slices.Contains(for_, here)
	}
	return some
}

// endpoints returns all endpoints of a Service's port in one family, ready or not, in order. Each address and
// port occurs once.
func (v *view) endpoints(svc *cluster.Service, port *cluster.ServicePort, f tables.Family) []endpoint {
	var all []endpoint
	for _, s := range v.SlicesOf(cluster.Name{Namespace: svc.Key.Namespace, Name: svc.Key.Name}) {
		if s.Family != int(f) {
			continue
		}
		i := slices.IndexFunc(s.Ports, func(p cluster.EndpointPort) bool {
			return p.Name == port.Name && p.Protocol == port.Protocol && p.Number != 0
		})
		if i < 0 {
			continue
		}
		for e := range s.Endpoints {
			if len(s.Endpoints[e].Addresses) > 0 {
				all = append(all, v.endpoint(&s.Endpoints[e], s.Ports[i].Number))
			}
		}
	}
	slices.SortStableFunc(all, compareEndpoints)
	return slices.CompactFunc(all, func(a, b endpoint) bool { return a.at == b.at })
}

func (v *view) endpoint(e *cluster.Endpoint, port uint16) endpoint {
	addr := e.Addresses[0]
	return endpoint{
		at: netip.AddrPortFrom(addr, port), local: e.NodeName == v.node, host: v.nodeIPs[addr], of: e,
	}
}
