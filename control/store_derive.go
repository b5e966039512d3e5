package control

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// EndpointSlices from Pods, as the endpoint slice controller of a cluster makes
// them, for Services that select Pods and have no EndpointSlice of their own.
// Pods that have ended or have no address are left out; a Pod that is being
// deleted is terminating, and serving while it is ready. Pods whose named
// target ports have different numbers come into different slices. Slices' names hold
// colons, so that no other slice has them.
//
// The store keeps a derivation, which looks only at the Services that a change
// concerns: it finds the Pods of a selector by one of its labels, and the Services of
// a Pod by its namespace.

// label is a label with its value in a namespace.
type label struct{ namespace, name, value string }

// derivation finds Pods by label and Services by namespace, as they were in
// the snapshot it was last updated with.
type derivation struct {
	pods     map[label]map[Key]*Pod
	services map[string]map[Key]*Service // those with a selector
}

func newDerivation() *derivation {
	return &derivation{pods: map[label]map[Key]*Pod{}, services: map[string]map[Key]*Service{}}
}

func (d *derivation) addPod(p *Pod) {
	if _, twin := origin(p.Key); twin {
		return // a Service's endpoint is the Pod's first address
	}
	for name, value := range p.Labels {
		l := label{p.Key.Namespace, name, value}
		if d.pods[l] == nil {
			d.pods[l] = map[Key]*Pod{}
		}
		d.pods[l][p.Key] = p
	}
}

func (d *derivation) removePod(p *Pod) {
	for name, value := range p.Labels {
		l := label{p.Key.Namespace, name, value}
		delete(d.pods[l], p.Key)
		if len(d.pods[l]) == 0 {
			delete(d.pods, l)
		}
	}
}

// update derives anew for the Services that the changes so far concern, and
// puts the slices into the snapshot in the making.
func (d *derivation) update(b *building) {
	concerned := map[Key]bool{}
	for _, k := range b.changed {
		switch k.Kind {
		case KindPod:
			d.updatePod(b.old.Pods[k], b.next.Pods[k], concerned)
		case KindService:
			d.updateService(k, b.next.Services[k])
			concerned[k] = true
		case KindEndpointSlice:
			concern(b.old.EndpointSlices[k], concerned)
			concern(b.next.EndpointSlices[k], concerned)
		case KindNode:
			d.updateNode(b, k, concerned)
		}
	}
	given := isGiven(b)
	for k := range concerned {
		d.replace(b, k, given(Name{k.Namespace, k.Name}))
	}
}

func concern(s *EndpointSlice, concerned map[Key]bool) {
	if s != nil && !s.Derived {
		concerned[Key{KindService, s.Service.Namespace, s.Service.Name}] = true
	}
}

func (d *derivation) updatePod(old, next *Pod, concerned map[Key]bool) {
	if old != nil {
		d.removePod(old)
	}
	if next != nil {
		d.addPod(next)
	}
	for _, p := range []*Pod{old, next} {
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

func (d *derivation) updateService(k Key, next *Service) {
	delete(d.services[k.Namespace], k)
	if next == nil || len(next.Selector) == 0 {
		return
	}
	if d.services[k.Namespace] == nil {
		d.services[k.Namespace] = map[Key]*Service{}
	}
	d.services[k.Namespace][k] = next
}

// updateNode concerns every Service when a Node moves to another zone.
func (d *derivation) updateNode(b *building, k Key, concerned map[Key]bool) {
	if zoneOf(b.old, k.Name) == zoneOf(b.next, k.Name) {
		return
	}
	for _, services := range d.services {
		for k := range services {
			concerned[k] = true
		}
	}
}

func zoneOf(c *Cluster, node string) string {
	if n := c.Node(node); n != nil {
		return n.Zone()
	}
	return ""
}

// replace puts the slices that a Service gets in the place of those it had.
func (d *derivation) replace(b *building, k Key, given bool) {
	var want []*EndpointSlice
	name := Name{k.Namespace, k.Name}
	if svc := b.next.Services[k]; svc != nil && !given {
		want = d.derive(b.next, svc)
	}
	keep := map[Key]bool{}
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

// isGiven tells which Services have an EndpointSlice of their own in the
// snapshot in the making, before any is derived for it.
func isGiven(b *building) func(Name) bool {
	fresh := map[Name]bool{}
	for _, k := range b.changed {
		if s := b.next.EndpointSlices[k]; s != nil && !s.Derived {
			fresh[s.Service] = true
		}
	}
	return func(service Name) bool {
		return fresh[service] || slices.ContainsFunc(b.old.SlicesOf(service), func(s *EndpointSlice) bool {
			now := b.next.EndpointSlices[s.Key]
			return now != nil && !now.Derived && now.Service == service
		})
	}
}

// derive makes the slices of a Service that has none of its own.
func (d *derivation) derive(c *Cluster, svc *Service) []*EndpointSlice {
	if len(svc.Selector) == 0 || svc.Type == ExternalNameService {
		return nil
	}
	byName := map[string]*EndpointSlice{}
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
	return slices.SortedFunc(maps.Values(byName), func(a, b *EndpointSlice) int { return a.Key.Compare(b.Key) })
}

// selected are the Pods behind a Service, in order of their keys: they are
// looked for under the label that the fewest Pods have.
func (d *derivation) selected(svc *Service) []*Pod {
	var fewest map[Key]*Pod
	first := true
	for name, value := range svc.Selector {
		pods := d.pods[label{svc.Key.Namespace, name, value}]
		if first || len(pods) < len(fewest) {
			fewest, first = pods, false
		}
	}
	var out []*Pod
	for _, p := range fewest {
		if selects(svc.Selector, p) && !p.Terminated() {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b *Pod) int { return a.Key.Compare(b.Key) })
	return out
}

// selects reports whether a Pod has all labels of a Service's selector.
func selects(selector Labels, p *Pod) bool {
	for name, value := range selector {
		if got, ok := p.Labels[name]; !ok || got != value {
			return false
		}
	}
	return true
}

// servesFamily reports whether the Service has endpoints of the address' family:
// those of its ClusterIPs, else of its ipFamilies, else all.
func servesFamily(svc *Service, addr netip.Addr) bool {
	if len(svc.ClusterIPs) > 0 {
		return slices.ContainsFunc(svc.ClusterIPs, func(a netip.Addr) bool { return a.Is4() == addr.Is4() })
	}
	return len(svc.Families) == 0 || slices.Contains(svc.Families, familyOf(addr))
}

func familyOf(a netip.Addr) int {
	if a.Is4() {
		return 4
	}
	return 6
}

// portsFor are the Service's ports with the numbers they have at a Pod. A named
// target port that the Pod does not have is left out.
func portsFor(svc *Service, p *Pod) []EndpointPort {
	var out []EndpointPort
	for _, sp := range svc.Ports {
		number := sp.TargetPort.Number
		if sp.TargetPort.Name != "" {
			found, ok := p.Port(sp.TargetPort.Name, sp.Protocol)
			if !ok {
				continue
			}
			number = found
		}
		out = append(out, EndpointPort{Name: sp.Name, Protocol: sp.Protocol, Number: number})
	}
	return out
}

// derivedSlice is an empty slice named after the Service, family and ports.
func derivedSlice(svc *Service, addr netip.Addr, ports []EndpointPort) *EndpointSlice {
	family := familyOf(addr)
	parts := []string{svc.Key.Name, "ipv" + strconv.Itoa(family)}
	for _, p := range ports {
		parts = append(parts, cmp.Or(p.Name, "port")+"="+strconv.Itoa(int(p.Number)))
	}
	return &EndpointSlice{
		Meta:    Meta{Key: Key{KindEndpointSlice, svc.Key.Namespace, strings.Join(parts, ":")}},
		Service: Name{svc.Key.Namespace, svc.Key.Name},
		Family:  family,
		Ports:   ports,
		Derived: true,
	}
}

// endpointFor is a Pod's endpoint, with the conditions that the controller
// gives it: ready unless it is being deleted, or always when the Service
// publishes Pods that are not ready.
func endpointFor(c *Cluster, svc *Service, p *Pod, addr netip.Addr) Endpoint {
	e := Endpoint{
		Addresses:   []netip.Addr{addr},
		Ready:       svc.PublishNotReady || p.Ready && !p.Deleting,
		Serving:     p.Ready,
		Terminating: p.Deleting,
		NodeName:    p.NodeName,
		Zone:        zoneOf(c, p.NodeName),
		Pod:         Name{p.Key.Namespace, p.Key.Name},
	}
	switch {
	case svc.Distribution == PreferSameNode && p.NodeName != "":
		e.ForNodes = []string{p.NodeName}
	case svc.Distribution != "" && e.Zone != "":
		e.ForZones = []string{e.Zone}
	}
	return e
}

// indexSlices renews the index of EndpointSlices for the Services that a change
// concerns; the rest is as it was.
func indexSlices(b *building, services map[Name]bool) map[Name][]*EndpointSlice {
	if len(services) == 0 {
		return b.old.slicesOf
	}
	index := maps.Clone(b.old.slicesOf)
	fresh := map[Name][]Key{}
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

// slicesNamed are those of the named slices that belong to the Service, in
// order of their keys.
func slicesNamed(c *Cluster, service Name, keys []Key) []*EndpointSlice {
	slices.SortFunc(keys, Key.Compare)
	var out []*EndpointSlice
	for _, k := range slices.Compact(keys) {
		if s := c.EndpointSlices[k]; s != nil && s.Service == service {
			out = append(out, s)
		}
	}
	return out
}
