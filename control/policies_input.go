package control

import "maps"

// The first stage of an Update: what of the cluster changed, and which specs
// must therefore be looked at. Pods go through the sets, which know their
// users; the rest is asked of every spec.

// movePods tells the sets of Pods what came, went and changed, and marks the
// specs that use sets which are not as before.
func (p *Policies) movePods(old *Cluster, ports map[Name]uint32) {
	changed := map[Name]bool{}
	for k, pod := range p.cluster.Pods {
		if old.Pods[k] != pod {
			changed[Name{k.Namespace, k.Name}] = true
		}
	}
	for k := range old.Pods {
		if p.cluster.Pods[k] == nil {
			changed[Name{k.Namespace, k.Name}] = true
		}
	}
	p.peers.bulk = len(changed) > bulkChange
	for name := range changed {
		p.move(p.peers, name, 0)
	}
	for name, port := range ports {
		p.move(p.local, name, port)
	}
	for _, name := range p.local.names() {
		if _, there := ports[name]; !there {
			p.touch(p.local.remove(name))
		}
	}
}

// bulkChange is how many Pods may change before addresses are made anew.
const bulkChange = 32

// move brings one Pod of a population up to date. Pods that have ended, and
// those that share their Node's addresses, are in none.
func (p *Policies) move(sets *podSets, name Name, port uint32) {
	pod := p.cluster.Pod(name)
	if pod == nil || pod.Terminated() || pod.HostNetwork {
		p.touch(sets.remove(name))
		return
	}
	p.touch(sets.put(name, member{pod, port}))
}

func (p *Policies) touch(sets []*podSet) {
	for _, set := range sets {
		for s := range set.users {
			p.dirty[s] = true
		}
	}
}

// markChanged marks the specs for which a namespace, a Node or the groups of a
// Service may have changed.
func (p *Policies) markChanged(old *Cluster) {
	spaces := changedNamespaces(old, p.cluster)
	for _, ns := range spaces {
		p.touch(p.peers.renamespace(ns))
		p.touch(p.local.renamespace(ns))
	}
	nodes := !maps.Equal(old.Nodes, p.cluster.Nodes)
	for _, plan := range p.plans {
		for _, s := range plan.specs {
			if len(spaces) > 0 && len(s.peers.relative) > 0 || nodes && len(s.peers.nodes) > 0 ||
				len(s.services)+len(s.peers.services) > 0 {
				p.dirty[s] = true
			}
		}
	}
}

func changedNamespaces(old, now *Cluster) (names []string) {
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
