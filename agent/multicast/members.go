package multicast

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/control/cluster"
)

// Bounds of what Pods and Nodes can make this agent keep. A host joins 20 groups by
// default (igmp_max_memberships of Linux).
const maxPerPod = 64

// members are the members of all groups. Only one goroutine uses them at a time.
type members struct {
	groups map[netip.Addr]*group
	perPod map[cluster.Name]int // groups that it has joined
}

// group is one group with the times of its members' last reports.
type group struct {
	pods  map[cluster.Name]report
	nodes map[netip.Addr]time.Time
}

// report is a Pod's last report of a group: when it came, and its type.
type report struct {
	at   time.Time
	kind uint8
}

func newMembers() members {
	return members{groups: map[netip.Addr]*group{}, perPod: map[cluster.Name]int{}}
}

// groupOf is the group of an address; nil for an address that cannot have one.
func (m *members) groupOf(a netip.Addr) *group {
	if !a.Is4() || !a.IsMulticast() || a == allHosts {
		return nil
	}
	g := m.groups[a]
	if g == nil && len(m.groups) < control.MaxMulticastGroups {
		g = &group{map[cluster.Name]report{}, map[netip.Addr]time.Time{}}
		m.groups[a] = g
	}
	return g
}

// joinPod records a Pod's report. It says whether the Pod is a new member, or reports in
// another way.
func (m *members) joinPod(a netip.Addr, pod cluster.Name, now report) bool {
	g := m.groupOf(a)
	if g == nil {
		return false
	}
	was, member := g.pods[pod]
	if !member && m.perPod[pod] >= maxPerPod {
		m.sweep(a)
		return false
	}
	if !member {
		m.perPod[pod]++
	}
	g.pods[pod] = now
	return !member || was.kind != now.kind
}

// leavePod removes a Pod from a group, and says whether it was a member.
func (m *members) leavePod(a netip.Addr, pod cluster.Name) bool {
	g := m.groups[a]
	if g == nil {
		return false
	}
	_, member := g.pods[pod]
	if member {
		delete(g.pods, pod)
		if m.perPod[pod]--; m.perPod[pod] == 0 {
			delete(m.perPod, pod)
		}
		m.sweep(a)
	}
	return member
}

// joinNode and leaveNode do the same for another Node.
func (m *members) joinNode(a, node netip.Addr, now time.Time) bool {
	g := m.groupOf(a)
	if g == nil {
		return false
	}
	_, member := g.nodes[node]
	g.nodes[node] = now
	return !member
}

func (m *members) leaveNode(a, node netip.Addr) bool {
	g := m.groups[a]
	if g == nil {
		return false
	}
	_, member := g.nodes[node]
	delete(g.nodes, node)
	m.sweep(a)
	return member
}

// sweep forgets a group without members.
func (m *members) sweep(a netip.Addr) {
	if g := m.groups[a]; g != nil && len(g.pods)+len(g.nodes) == 0 {
		delete(m.groups, a)
	}
}

// expire removes the Pods and Nodes whose last report is too old, and Pods that are gone. It
// says whether there were any.
func (m *members) expire(pods, nodes time.Time, here func(cluster.Name) bool) (any bool) {
	for a, g := range m.groups {
		for pod, last := range g.pods {
			if last.at.Before(pods) || !here(pod) {
				any = m.leavePod(a, pod) || any
			}
		}
		for node, last := range g.nodes {
			if last.Before(nodes) {
				any = m.leaveNode(a, node) || any
			}
		}
	}
	return any
}

// all are the groups with their members, in order.
func (m *members) all() []control.MulticastGroup {
	all := make([]control.MulticastGroup, 0, len(m.groups))
	for _, a := range slices.SortedFunc(maps.Keys(m.groups), netip.Addr.Compare) {
		g := m.groups[a]
		one := control.MulticastGroup{Addr: a, Nodes: slices.SortedFunc(maps.Keys(g.nodes), netip.Addr.Compare)}
		for _, pod := range slices.SortedFunc(maps.Keys(g.pods), compareNames) {
			one.Pods = append(one.Pods, control.MulticastPod{Name: pod, Report: g.pods[pod].kind})
		}
		all = append(all, one)
	}
	return all
}

func compareNames(a, b cluster.Name) int {
	return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
}
