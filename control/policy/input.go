package policy

import "github.com/antrail/antrail/control/cluster"

// The first stage of an Update finds what changed in the cluster and marks the specs that
// depend on it. For Pods the sets know their users. For other objects each spec is checked.

// movePods updates the sets of Pods, and marks the specs that depend on the sets that changed.
// ExternalEntities are Pods here.
func (p *Policies) movePods(old *cluster.Cluster, keys []cluster.Key, ports map[cluster.Key]uint32) {
	if keys == nil {
		keys = cluster.AppendChanged(nil, old.Pods, p.cluster.Pods)
		keys = cluster.AppendChanged(keys, old.ExternalEntities, p.cluster.ExternalEntities)
	}
	p.peers.bulk = len(keys) > bulkChange
	for _, k := range keys {
		if k.Kind == cluster.KindPod || k.Kind == cluster.KindExternalEntity {
			p.movePod(p.peers, k, 0)
		}
	}
	for k, port := range ports {
		p.moveHere(p.movePod(p.local, k, port))
	}
	for _, k := range p.local.names() {
		if _, there := ports[k]; !there {
			p.moveHere(p.markUsers(p.local.removePod(k)))
		}
	}
}

// moveHere records that Pods of this Node may have entered or left policies.
func (p *Policies) moveHere(moved bool) { p.regroup = p.regroup || moved }

// bulkChange is the number of changed Pods above which addresses are rebuilt, not merged.
const bulkChange = 32

// movePod updates one Pod of a population and reports whether a set changed. Terminated Pods, and
// Pods that share their Node's addresses, are in no set.
func (p *Policies) movePod(sets *podSets, k cluster.Key, port uint32) bool {
	pod := p.cluster.Pods[k]
	if e := p.cluster.ExternalEntities[k]; e != nil {
		pod = &e.Pod
	}
	if pod == nil || pod.Terminated() || pod.HostNetwork {
		return p.markUsers(sets.removePod(k))
	}
	return p.markUsers(sets.setPod(k, member{pod, port}))
}

// markUsers marks what depends on sets of Pods: the specs that watch their Pods, and the
// AddressSets that contain them. It reports whether sets is not empty.
func (p *Policies) markUsers(sets []*podSet) bool {
	for _, set := range sets {
		for s := range set.watchers {
			p.dirty[s] = true
		}
		for u := range set.parents {
			p.moved[u] = AddressDelta{}
		}
	}
	return len(sets) > 0
}

// markChanged marks the specs that depend on a changed namespace or Node, and all specs that
// name Services, because their groups may have changed.
func (p *Policies) markChanged(old *cluster.Cluster) {
	spaces := changedNamespaces(old, p.cluster)
	p.regroup = p.regroup || len(spaces) > 0 // namespaces say whether isolation is logged
	for _, ns := range spaces {
		p.markUsers(p.peers.renamespace(ns))
		p.moveHere(p.markUsers(p.local.renamespace(ns)))
	}
	nodes := !equalMaps(old.Nodes, p.cluster.Nodes)
	for s := range p.outlook {
		if len(spaces) > 0 && len(s.peers.relative) > 0 || nodes && len(s.peers.nodes) > 0 ||
			len(s.services)+len(s.peers.services) > 0 {
			p.dirty[s] = true
		}
	}
}

// looksAround reports whether a spec depends on more than Pods: on namespaces,
// Nodes or the groups of Services.
func (s *policySpec) looksAround() bool {
	return len(s.peers.relative)+len(s.peers.nodes)+len(s.services)+len(s.peers.services) > 0
}

// settleSets updates the AddressSets whose Pods changed. A spec has parts while it applies to
// an address, so it marks specs whose first address came or whose last address went.
func (p *Policies) settleSets() {
	for u := range p.moved {
		before := len(u.all)
		p.moved[u] = u.update(p.config.Families, p.deltas)
		if u.of == peersOfRules || (before == 0) == (len(u.all) == 0) {
			continue
		}
		for _, set := range u.sets {
			for s := range set.users {
				p.dirty[s] = true
			}
		}
	}
}

func changedNamespaces(old, now *cluster.Cluster) (names []string) {
	if sameMap(old.Namespaces, now.Namespaces) {
		return nil
	}
	for k, ns := range now.Namespaces {
		if old.Namespaces[k] != ns {
			names = append(names, k.Name)
		}
	}
	for k := range old.Namespaces {
		if now.Namespaces[k] == nil {
			names = append(names, k.Name)
		}
	}
	return names
}
