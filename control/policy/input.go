package policy

import "github.com/antrail/antrail/control/cluster"

// The first stage of an Update: what of the cluster changed, and which specs
// must therefore be looked at. Pods go through the sets, which know their
// users; the rest is asked of every spec.

// movePods tells the sets of Pods what came, went and changed, and marks the
// specs that look at the Pods of sets which are not as before. ExternalEntities are Pods here.
func (p *Policies) movePods(old *cluster.Cluster, keys []cluster.Key, ports map[cluster.Key]uint32) {
	if keys == nil {
		keys = cluster.AppendChanged(nil, old.Pods, p.cluster.Pods)
		keys = cluster.AppendChanged(keys, old.ExternalEntities, p.cluster.ExternalEntities)
	}
	p.peers.bulk = len(keys) > bulkChange
	for _, k := range keys {
		if k.Kind == cluster.KindPod || k.Kind == cluster.KindExternalEntity {
			p.move(p.peers, k, 0)
		}
	}
	for k, port := range ports {
		p.moveHere(p.move(p.local, k, port))
	}
	for _, k := range p.local.names() {
		if _, there := ports[k]; !there {
			p.moveHere(p.touch(p.local.remove(k)))
		}
	}
}

// moveHere notes that Pods of this Node may have moved into policies or out.
func (p *Policies) moveHere(moved bool) { p.regroup = p.regroup || moved }

// bulkChange is how many Pods may change before addresses are made anew.
const bulkChange = 32

// move brings one Pod of a population up to date, and reports whether a set is
// not as before. Pods that have ended, and those that share their Node's
// addresses, are in none.
func (p *Policies) move(sets *podSets, k cluster.Key, port uint32) bool {
	pod := p.cluster.Pods[k]
	if e := p.cluster.ExternalEntities[k]; e != nil {
		pod = &e.Pod
	}
	if pod == nil || pod.Terminated() || pod.HostNetwork {
		return p.touch(sets.remove(k))
	}
	return p.touch(sets.put(k, member{pod, port}))
}

// touch marks what depends on sets of Pods: the specs that look at their Pods,
// and the sets of addresses that other specs share. It reports whether there is
// any set.
func (p *Policies) touch(sets []*podSet) bool {
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

// markChanged marks the specs for which a namespace, a Node or the groups of a
// Service may have changed.
func (p *Policies) markChanged(old *cluster.Cluster) {
	spaces := changedNamespaces(old, p.cluster)
	p.regroup = p.regroup || len(spaces) > 0 // they say whether isolation is logged
	for _, ns := range spaces {
		p.touch(p.peers.renamespace(ns))
		p.moveHere(p.touch(p.local.renamespace(ns)))
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

// settleSets brings the sets of addresses up to date whose Pods changed. Specs
// begin to have parts with the first address that they apply to, and end with
// the last.
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
