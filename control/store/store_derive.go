package store

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/antrail/antrail/control/cluster"
)

// EndpointSlices from Pods, as the endpoint slice controller of a cluster makes them. They are
// for Services that select Pods and have no EndpointSlice of their own:
//
//   - Pods that have ended or have no address are left out.
//   - A Pod that is being deleted is terminating, and serving while it is ready.
//   - Pods whose named target ports have different numbers are in different slices.
//   - The names of these slices hold colons, so no given slice has the same name.
//
// A derivation derives only for the Services that a change concerns. It finds the Pods of a
// selector by one of its labels, and the Services of a Pod by its namespace.

// label is a label and value in a namespace.
type label struct{ namespace, name, value string }

// derivation indexes the Pods of a snapshot by label and the Services by namespace.
type derivation struct {
	pods     map[label]map[cluster.Key]*cluster.Pod
	services map[string]map[cluster.Key]*cluster.Service // those with a selector
}

func newDerivation() *derivation {
	return &derivation{pods: map[label]map[cluster.Key]*cluster.Pod{}, services: map[string]map[cluster.Key]*cluster.Service{}}
}

func (d *derivation) addPod(p *cluster.Pod) {
	if _, twin := origin(p.Key); twin {
		return // a Service's endpoint is the Pod's first address
	}
	for name, value := range p.Labels {
		l := label{p.Key.Namespace, name, value}
		if d.pods[l] == nil {
			d.pods[l] = map[cluster.Key]*cluster.Pod{}
		}
		d.pods[l][p.Key] = p
	}
}

func (d *derivation) removePod(p *cluster.Pod) {
	for name, value := range p.Labels {
		l := label{p.Key.Namespace, name, value}
		delete(d.pods[l], p.Key)
		if len(d.pods[l]) == 0 {
			delete(d.pods, l)
		}
	}
}

// update derives the slices of the Services that the changes concern, and puts them into the
// snapshot in the making.
func (d *derivation) update(b *building) {
	concerned := map[cluster.Key]bool{}
	for _, k := range b.changed {
		switch k.Kind {
		case cluster.KindPod:
			d.updatePod(b.old.Pods[k], b.next.Pods[k], concerned)
		case cluster.KindService:
			d.updateService(k, b.next.Services[k])
			concerned[k] = true
		case cluster.KindEndpointSlice:
			concern(b.old.EndpointSlices[k], concerned)
			concern(b.next.EndpointSlices[k], concerned)
		case cluster.KindNode:
			d.updateNode(b, k, concerned)
		}
	}
	given := isGiven(b)
	for k := range concerned {
		d.replace(b, k, given(cluster.Name{Namespace: k.Namespace, Name: k.Name}))
	}
}

func concern(s *cluster.EndpointSlice, concerned map[cluster.Key]bool) {
	if s != nil && !s.Derived {
		concerned[cluster.Key{Kind: cluster.KindService, Namespace: s.Service.Namespace, Name: s.Service.Name}] = true
	}
}

func (d *derivation) updatePod(old, next *cluster.Pod, concerned map[cluster.Key]bool) {
	if old != nil {
		d.removePod(old)
	}
	if next != nil {
		d.addPod(next)
	}
	for _, p := range []*cluster.Pod{old, next} {
		if p == nil {
			continue
		}
		for k, svc := range d.services[p.Key.Namespace] {
			if selects(svc.Selector, p) {
				concerned[k] = true
			}
		}
	}
}

func (d *derivation) updateService(k cluster.Key, next *cluster.Service) {
	delete(d.services[k.Namespace], k)
	if next == nil || len(next.Selector) == 0 {
		return
	}
	if d.services[k.Namespace] == nil {
		d.services[k.Namespace] = map[cluster.Key]*cluster.Service{}
	}
	d.services[k.Namespace][k] = next
}

// updateNode concerns all Services if a Node moves to another zone.
func (d *derivation) updateNode(b *building, k cluster.Key, concerned map[cluster.Key]bool) {
	if zoneOf(b.old, k.Name) == zoneOf(b.next, k.Name) {
		return
	}
	for _, services := range d.services {
		for k := range services {
			concerned[k] = true
		}
	}
}

func zoneOf(c *cluster.Cluster, node string) string {
	if n := c.Node(node); n != nil {
		return n.Zone()
	}
	return ""
}

// replace replaces the derived slices of a Service.
func (d *derivation) replace(b *building, k cluster.Key, given bool) {
	var want []*cluster.EndpointSlice
	name := cluster.Name{Namespace: k.Namespace, Name: k.Name}
	if svc := b.next.Services[k]; svc != nil && !given {
		want = d.derive(b.next, svc)
	}
	keep := map[cluster.Key]bool{}
	for _, s := range want {
		keep[s.Key] = true
		if now := b.next.EndpointSlices[s.Key]; now == nil || !SameObject(now, s) {
			b.put(s.Key, s)
		}
	}
	for _, s := range b.old.SlicesOf(name) {
		if s.Derived && !keep[s.Key] {
			b.put(s.Key, nil)
		}
	}
}

// isGiven returns a function that reports whether a Service has an EndpointSlice of its own in
// the snapshot in the making.
func isGiven(b *building) func(cluster.Name) bool {
	fresh := map[cluster.Name]bool{}
	for _, k := range b.changed {
		if s := b.next.EndpointSlices[k]; s != nil && !s.Derived {
			fresh[s.Service] = true
		}
	}
	return func(service cluster.Name) bool {
		return fresh[service] || slices.ContainsFunc(b.old.SlicesOf(service), func(s *cluster.EndpointSlice) bool {
			now := b.next.EndpointSlices[s.Key]
			return now != nil && !now.Derived && now.Service == service
		})
	}
}

// derive makes the slices of a Service without any of its own.
func (d *derivation) derive(c *cluster.Cluster, svc *cluster.Service) []*cluster.EndpointSlice {
	if len(svc.Selector) == 0 || svc.Type == cluster.ExternalNameService {
		return nil
	}
	byName := map[string]*cluster.EndpointSlice{}
	for _, p := range d.selected(svc) {
		for _, addr := range p.IPs {
			if !servesFamily(svc, addr) {
				continue
			}
			ports := portsFor(svc, p)
			if len(ports) == 0 {
				continue
			}
			s := derivedSlice(svc, addr, ports)
			if byName[s.Key.Name] == nil {
				byName[s.Key.Name] = s
			}
			s = byName[s.Key.Name]
			s.Endpoints = append(s.Endpoints, endpointFor(c, svc, p, addr))
		}
	}
	return slices.SortedFunc(maps.Values(byName), func(a, b *cluster.EndpointSlice) int { return a.Key.Compare(b.Key) })
}

// selected returns the Pods behind a Service, in order of their keys. It searches the Pods with
// the rarest label of the selector.
func (d *derivation) selected(svc *cluster.Service) []*cluster.Pod {
	var fewest map[cluster.Key]*cluster.Pod
	first := true
	for name, value := range svc.Selector {
		pods := d.pods[label{svc.Key.Namespace, name, value}]
		if first || len(pods) < len(fewest) {
			fewest, first = pods, false
		}
	}
	var out []*cluster.Pod
	for _, p := range fewest {
		if selects(svc.Selector, p) && !p.Terminated() {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b *cluster.Pod) int { return a.Key.Compare(b.Key) })
	return out
}

// selects reports whether a Pod has all labels of a Service's selector.
func selects(selector cluster.Labels, p *cluster.Pod) bool {
	for name, value := range selector {
		if got, ok := p.Labels[name]; !ok || got != value {
			return false
		}
	}
	return true
}

// servesFamily reports whether the Service has endpoints of the address' family. The families
// are those of its ClusterIPs, or else its ipFamilies, or else all.
func servesFamily(svc *cluster.Service, addr netip.Addr) bool {
	if len(svc.ClusterIPs) > 0 {
		return slices.ContainsFunc(svc.ClusterIPs, func(a netip.Addr) bool { return a.Is4() == addr.Is4() })
	}
	return len(svc.Families) == 0 || slices.Contains(svc.Families, FamilyOf(addr))
}

// FamilyOf is the IP family of an address: 4 or 6.
func FamilyOf(a netip.Addr) int {
	if a.Is4() {
		return 4
	}
	return 6
}

// portsFor returns the Service's ports with their numbers at a Pod. It leaves out a named
// target port that the Pod lacks.
func portsFor(svc *cluster.Service, p *cluster.Pod) []cluster.EndpointPort {
	var out []cluster.EndpointPort
	for _, sp := range svc.Ports {
		number := sp.TargetPort.Number
		if sp.TargetPort.Name != "" {
			found, ok := p.Port(sp.TargetPort.Name, sp.Protocol)
			if !ok {
				continue
			}
			number = found
		}
		out = append(out, cluster.EndpointPort{Name: sp.Name, Protocol: sp.Protocol, Number: number})
	}
	return out
}

// derivedSlice makes an empty slice, named after the Service, family and ports.
func derivedSlice(svc *cluster.Service, addr netip.Addr, ports []cluster.EndpointPort) *cluster.EndpointSlice {
	family := FamilyOf(addr)
	parts := []string{svc.Key.Name, "ipv" + strconv.Itoa(family)}
	for _, p := range ports {
		parts = append(parts, cmp.Or(p.Name, "port")+"="+strconv.Itoa(int(p.Number)))
	}
	return &cluster.EndpointSlice{
		Meta:    cluster.Meta{Key: cluster.Key{Kind: cluster.KindEndpointSlice, Namespace: svc.Key.Namespace, Name: strings.Join(parts, ":")}},
		Service: cluster.Name{Namespace: svc.Key.Namespace, Name: svc.Key.Name},
		Family:  family,
		Ports:   ports,
		Derived: true,
	}
}

// endpointFor makes the endpoint of a Pod, with the conditions that the controller sets. It is
// ready if the Pod is ready and not being deleted, or if the Service publishes Pods that are
// not ready.
func endpointFor(c *cluster.Cluster, svc *cluster.Service, p *cluster.Pod, addr netip.Addr) cluster.Endpoint {
	e := cluster.Endpoint{
		Addresses:   []netip.Addr{addr},
		Ready:       svc.PublishNotReady || p.Ready && !p.Deleting,
		Serving:     p.Ready,
		Terminating: p.Deleting,
		NodeName:    p.NodeName,
		Zone:        zoneOf(c, p.NodeName),
		Pod:         cluster.Name{Namespace: p.Key.Namespace, Name: p.Key.Name},
	}
	switch {
	case svc.Distribution == cluster.PreferSameNode && p.NodeName != "":
		e.ForNodes = []string{p.NodeName}
	case svc.Distribution != "" && e.Zone != "":
		e.ForZones = []string{e.Zone}
	}
	return e
}

// indexSlices updates the index of EndpointSlices for the given Services.
func indexSlices(b *building, services map[cluster.Name]bool) map[cluster.Name][]*cluster.EndpointSlice {
	if len(services) == 0 {
		return b.old.ServiceSlices
	}
	index := maps.Clone(b.old.ServiceSlices)
	fresh := map[cluster.Name][]cluster.Key{}
	for _, k := range b.changed {
		if s := b.next.EndpointSlices[k]; s != nil {
			fresh[s.Service] = append(fresh[s.Service], k)
		}
	}
	for name := range services {
		keys := fresh[name]
		for _, s := range index[name] {
			keys = append(keys, s.Key)
		}
		index[name] = slicesNamed(b.next, name, keys)
		if len(index[name]) == 0 {
			delete(index, name)
		}
	}
	return index
}

// slicesNamed returns the slices with the given keys that belong to the Service, in order.
func slicesNamed(c *cluster.Cluster, service cluster.Name, keys []cluster.Key) []*cluster.EndpointSlice {
	slices.SortFunc(keys, cluster.Key.Compare)
	var out []*cluster.EndpointSlice
	for _, k := range slices.Compact(keys) {
		if s := c.EndpointSlices[k]; s != nil && s.Service == service {
			out = append(out, s)
		}
	}
	return out
}
