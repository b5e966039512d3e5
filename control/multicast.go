package control

import (
	"net/netip"
	"slices"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/ledger"
	"github.com/antrail/antrail/control/numbers"
	"github.com/antrail/antrail/tables"
)

// Multicast groups. Their members are not objects: Pods and other Nodes report them
// (agent/multicast). Each member gets a copy of a group's packets.

// kindMulticast is the kind of the objects that own groups in the ledger. No object of the cluster
// has this kind.
const kindMulticast cluster.Kind = "MulticastGroup"

// MulticastGroup is a multicast address and its members.
type MulticastGroup struct {
	Addr  netip.Addr
	Pods  []MulticastPod // of this Node
	Nodes []netip.Addr   // ends of the tunnel
}

// MulticastPod is a Pod that reported a group, with the type of its last report. Policies may forbid
// one type and allow another.
type MulticastPod struct {
	cluster.Name
	Report uint8
}

func (m MulticastPod) key() cluster.Key {
	return cluster.Key{Kind: cluster.KindPod, Namespace: m.Namespace, Name: m.Name.Name}
}

// MaxMulticastGroups is the limit of groups on a Node.
const MaxMulticastGroups = 1024

// multicastBuilder makes the entries and groups of multicast.
type multicastBuilder struct {
	policies *policyBuilder
	groups   []MulticastGroup
	joined   []netip.Addr // groups with members among this Node's Pods, in order
	ids      *numbers.Allocator[netip.Addr]
	has      map[netip.Addr]bool // groups with a wanted part
}

func newMulticastBuilder(policies *policyBuilder) *multicastBuilder {
	return &multicastBuilder{
		policies: policies,
		ids:      newMulticastNumbers(),
		has:      map[netip.Addr]bool{},
	}
}

func newMulticastNumbers() *numbers.Allocator[netip.Addr] {
	return numbers.NewAllocator[netip.Addr](tables.FirstMulticastGroup, tables.FirstMulticastGroup+MaxMulticastGroups-1)
}

// neighbours is the name of the part that exists even without a group.
const neighbours = "neighbours"

func multicastPart(name string) ledger.Part {
	return ledger.Part{Object: cluster.Key{Kind: kindMulticast, Name: name}}
}

// settled frees the number of a group that the switch no longer has.
func (b *multicastBuilder) settled(p ledger.Part, d *ledger.Desired) {
	if p.Object.Kind != kindMulticast || d != nil {
		return
	}
	if a, err := netip.ParseAddr(p.Object.Name); err == nil && !b.has[a] {
		b.ids.Free(a)
	}
}

func (b *multicastBuilder) build(c *change, w *wants) {
	if !c.all && !c.podsMoved() && !c.touches(cluster.KindNode, kindMulticast) && !(len(b.groups) > 0 && c.touches(policyKinds...)) {
		return
	}
	wanted := map[netip.Addr]bool{}
	b.joined = nil
	if c.now.config.Features.Multicast {
		b.neighbours(c.now, w)
		for _, g := range b.groups {
			wanted[g.Addr] = b.group(c.now, g, w)
		}
	} else if c.all {
		w.want(multicastPart(neighbours), nil)
	}
	for a := range b.has {
		if !wanted[a] {
			w.want(multicastPart(a.String()), nil)
		}
	}
	b.has = wanted
}

// neighbours makes the group of all Pods of this Node and all other Nodes. Queries and reports go to
// it. The Node needs the addresses of the others too.
func (b *multicastBuilder) neighbours(v *view, w *wants) {
	var pods []uint32
	for _, p := range v.connected() {
		pod, _ := v.localPod(p)
		pods = append(pods, pod.Port.No)
	}
	var nodes, addresses []netip.Addr
	for _, k := range sortedKeys(v.Nodes) {
		if n := v.Nodes[k]; k.Name != v.node && len(n.PodCIDRs) > 0 {
			addresses = append(addresses, n.Addresses...)
			if end, ok := v.pipeline.TunnelEnd(tables.Peer{NodeIPs: n.Addresses}, n.PodCIDRs[0].Addr()); ok {
				nodes = append(nodes, end)
			}
		}
	}
	part := multicastPart(neighbours)
	addresses = slices.DeleteFunc(addresses, netip.Addr.Is6)
	d, o := &ledger.Desired{Node: ledger.NodeSide{Multicast: addresses}}, ledger.Origin{Object: nodeBuilder{}.config(v).Object, Field: "spec.features"}
	entries, groups := v.pipeline.MulticastNeighbours(pods, nodes)
	d.AddEntries(o, entries...)
	for _, g := range groups {
		d.AddGroup(o, g)
	}
	w.want(part, d)
}

// group makes the entries of a group. It returns false if the group has no member here or no number.
func (b *multicastBuilder) group(v *view, g MulticastGroup, w *wants) bool {
	value := tables.MulticastGroup{Addr: g.Addr, Nodes: g.Nodes}
	for _, m := range g.Pods {
		if p := v.here[m.key()]; p != nil && b.policies.mayReport(m, g.Addr) {
			if pod, lacks := v.localPod(p); lacks == "" {
				value.Ports = append(value.Ports, pod.Port.No)
			}
		}
	}
	if len(value.Ports) > 0 {
		b.joined = append(b.joined, g.Addr)
	}
	if len(value.Ports)+len(value.Nodes) == 0 {
		return false
	}
	id, ok := b.ids.Assign(g.Addr)
	if !ok {
		return false
	}
	value.ID = id
	slices.Sort(value.Ports)
	part := multicastPart(g.Addr.String())
	d, o := &ledger.Desired{}, ledger.Origin{Object: part.Object}
	entry, group := v.pipeline.MulticastGroup(value)
	d.AddEntries(o, entry)
	d.AddGroup(o, group)
	w.want(part, d)
	return true
}

// SetMulticast replaces the groups with members, in the order of their addresses. Errors are those of
// Update.
func (r *Reconciler) SetMulticast(groups []MulticastGroup) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.multicast.groups = groups
	if r.view == nil {
		return nil
	}
	r.collectWants(&change{was: r.view, now: r.view, kind: map[cluster.Kind]bool{kindMulticast: true}})
	return r.installWaiting()
}

// MulticastNode returns the gateway's IPv4 address and MAC address. It returns false if the switch has
// no multicast.
func (r *Reconciler) MulticastNode() (gateway netip.Addr, mac [6]byte, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.view == nil || !r.view.config.Features.Multicast {
		return gateway, mac, false
	}
	for _, a := range r.view.config.GatewayIPs {
		if a.Is4() {
			return a, r.view.config.Gateway.MAC, true
		}
	}
	return gateway, mac, false
}

// of returns the groups that a Pod is a member of.
func (b *multicastBuilder) of(k cluster.Key) (all []netip.Addr) {
	for _, g := range b.groups {
		if slices.ContainsFunc(g.Pods, func(m MulticastPod) bool { return m.key() == k && b.policies.mayReport(m, g.Addr) }) {
			all = append(all, g.Addr)
		}
	}
	return all
}

// JoinedGroups returns the groups with members among this Node's Pods, in order. If policies keep a Pod
// from a group, it is not a member.
func (r *Reconciler) JoinedGroups() []netip.Addr {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.multicast.joined)
}

// MulticastGroups returns the groups that SetMulticast or Restore set.
func (r *Reconciler) MulticastGroups() []MulticastGroup {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.multicast.groups)
}

// CountReport counts a Pod's report of a group, with its bytes, for the rule that decides on it.
func (r *Reconciler) CountReport(group netip.Addr, m MulticastPod, bytes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.policies.policies; p != nil {
		p.CountReport(m.key(), group, m.Report, bytes)
	}
}

// HasPod reports whether a Pod of this Node has a port of the switch.
func (r *Reconciler) HasPod(name cluster.Name) bool {
	r.seen.mu.RLock()
	defer r.seen.mu.RUnlock()
	_, ok := r.seen.ports[name]
	return ok
}
