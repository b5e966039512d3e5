package control

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/tables"
)

// Which endpoints of a Service serve, seen from this Node. The rules are those
// of kube-proxy's CategorizeEndpoints, which Antrea follows:
//
//   - cluster: the ready endpoints; with topology hints, when every ready
//     endpoint has some and one is for here, only those that are for here. If
//     no endpoint is ready, those that still serve while they terminate.
//   - local: the ready endpoints on this Node, else those on this Node that
//     still serve while they terminate.
//
// A set that no address uses is nil and has no group; one that is used and has
// no endpoints is empty, and its group refuses connections.

// endpoint is a place that serves, as one port of a Service sees it.
type endpoint struct {
	at    netip.AddrPort
	local bool // on this Node
	host  bool // the address is a Node's
	of    *cluster.Endpoint
}

// value is the endpoint as the tables know it.
func (e *endpoint) value(proto cluster.Protocol) tables.Endpoint {
	return tables.Endpoint{Proto: uint8(proto), Addr: e.at, Local: e.local, Host: e.host}
}

// endpointSets are the two sets of a port; nil for one that is not used.
type endpointSets struct{ local, cluster *[]endpoint }

// groups are the sets by groupKind.
func (s endpointSets) groups() [2]*[]endpoint {
	return [2]*[]endpoint{localGroup: s.local, clusterGroup: s.cluster}
}

// all are the endpoints of both sets, each once, in order.
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

func compareEndpoints(a, b endpoint) int { return compareAddrPorts(a.at, b.at) }

// traffic says what the addresses of a port use.
type traffic struct{ local, cluster bool }

// trafficOf follows from the Service's policies and from whether it can be
// reached from outside: then the cluster's endpoints are used even with local
// policies, by what comes from this Node.
func trafficOf(svc *cluster.Service, addrs []address) traffic {
	external := slices.ContainsFunc(addrs, func(a address) bool { return a.External })
	dsr := slices.ContainsFunc(addrs, func(a address) bool { return a.DSR })
	return traffic{
		local:   svc.InternalLocal || svc.ExternalLocal && external || dsr,
		cluster: !svc.InternalLocal || external,
	}
}

// choose makes the sets of a port in one family.
func (v *view) choose(svc *cluster.Service, port int, f tables.Family, t traffic) endpointSets {
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

// serving are the ready endpoints that are wanted, or when nothing is ready,
// those that serve while they terminate.
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

// hinted says which endpoints the hints leave for this Node. Hints are followed
// when all ready endpoints have them and one of those is for here; an endpoint
// that terminates is never left out for its hints.
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

// hintsCount reports whether every ready endpoint has hints of a sort, and one
// of them is for here.
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

// endpoints are all endpoints of a Service's port in one family, ready or not,
// each address and port once, in order.
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

// index is a place in a list of a manifest: spec.ports[1].
func index(list string, i int) string { return fmt.Sprintf("%s[%d]", list, i) }
