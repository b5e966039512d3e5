package control

import (
	"cmp"
	"maps"
	"reflect"
	"slices"

	"github.com/antrail/antrail/tables"
)

var directions = [...]tables.Direction{tables.Ingress, tables.Egress}

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

// rank gives priorities to the Antrea-native policies that have a part now,
// whole directions of them, and takes back those of policies without. More
// important policies come first, so that a table is filled from the top.
func (p *Policies) rank() {
	var waiting []rankedBlock
	for block := range p.dirtyBlocks() {
		plan := p.plans[block.policy]
		want, active := plan.blocks[block.direction], plan.active(block.direction)
		if have, ranked := p.ranked[block]; ranked && (!active || have != want) {
			p.unrank(block.policy, block.direction, &policyPlan{})
		}
		if _, ranked := p.ranked[block]; active && !ranked {
			waiting = append(waiting, block)
		}
	}
	slices.SortFunc(waiting, func(a, b rankedBlock) int {
		return cmp.Or(p.blockOf(a).at(0).compare(p.blockOf(b).at(0)), a.policy.Compare(b.policy), cmp.Compare(a.direction, b.direction))
	})
	for _, block := range waiting {
		if p.refused[block.policy] != nil {
			continue
		}
		want := p.blockOf(block)
		if err := p.zone(want, block.direction).acquire(want); err != nil {
			p.refuse(block.policy, err)
			continue
		}
		p.ranked[block] = want
	}
}

// dirtyBlocks are the directions of Antrea-native policies with a spec that
// was looked at.
func (p *Policies) dirtyBlocks() map[rankedBlock]bool {
	blocks := map[rankedBlock]bool{}
	for s := range p.dirty {
		if s.kind != tables.K8sPolicy {
			blocks[rankedBlock{s.key.Policy, s.key.Direction}] = true
		}
	}
	return blocks
}

func (p *Policies) blockOf(b rankedBlock) ruleBlock { return p.plans[b.policy].blocks[b.direction] }

// active reports whether a direction of a policy has a part.
func (plan *policyPlan) active(d tables.Direction) bool {
	return slices.ContainsFunc(plan.specs, func(s *policySpec) bool {
		return s.key.Direction == d && (len(s.next) > 0 || s.next == nil && len(s.parts) > 0)
	})
}

// zone is the priorities of the table that a block stands in.
func (p *Policies) zone(b ruleBlock, d tables.Direction) *priorities {
	if b.tier >= BaselineTier {
		return p.priorities[tables.BaselinePolicy][d]
	}
	return p.priorities[tables.AntreaPolicy][d]
}

// unrank takes the priorities of a block back, unless the next plan of its
// policy wants the same.
func (p *Policies) unrank(k Key, d tables.Direction, next *policyPlan) {
	block := rankedBlock{k, d}
	if have, ranked := p.ranked[block]; ranked && have != next.blocks[d] {
		p.zone(have, d).release(have)
		delete(p.ranked, block)
	}
}

// publish compares the parts of the specs that were looked at with what they
// were, and those of all others by their priorities.
func (p *Policies) publish(change *PolicyChange) {
	for _, s := range p.dirtySpecs() {
		p.publishSpec(s, change)
	}
	p.republishMoved(change)
	p.dirty = map[*policySpec]bool{}
	sortRules(change.Removed)
	sortRules(change.Added)
}

func (p *Policies) publishSpec(s *policySpec, change *PolicyChange) {
	parts := make(map[string]*RealisedRule, len(s.next))
	for _, part := range slices.Sorted(maps.Keys(s.parts)) {
		if s.next[part] == nil {
			p.remove(s.parts[part], change)
		}
	}
	for _, part := range slices.Sorted(maps.Keys(s.next)) {
		key := s.key
		key.Part = part
		now := &RealisedRule{Key: key, Name: s.name, Rule: *s.next[part]}
		now.Rule.L7VLAN, now.Rule.Priority = p.vlanOf(s), p.priorityOf(s)
		parts[part] = p.replace(s.parts[part], now, change)
	}
	s.parts, s.next = parts, nil
}

func (p *Policies) vlanOf(s *policySpec) uint16 { return uint16(p.vlans.of[s.key]) }

func (p *Policies) priorityOf(s *policySpec) uint16 {
	if s.kind == tables.K8sPolicy {
		return 0
	}
	return p.priorities[s.kind][s.key.Direction].of(s.order)
}

// replace tells the difference between a part before (nil: none) and now, and
// returns the one that stands.
func (p *Policies) replace(old, now *RealisedRule, change *PolicyChange) *RealisedRule {
	if old == nil {
		now.Rule.ID = p.ids.allocate()
		change.Added = append(change.Added, now)
		return now
	}
	now.Rule.ID = old.Rule.ID
	if !sameButAddresses(old, now) {
		change.Removed = append(change.Removed, old)
		change.Added = append(change.Added, now)
		return now
	}
	c := AddressChange{
		RealisedRule: now,
		From:         p.deltas.between(old.Rule.From, now.Rule.From),
		To:           p.deltas.between(old.Rule.To, now.Rule.To),
	}
	if c.From.Empty() && c.To.Empty() {
		return old
	}
	change.Changed = append(change.Changed, c)
	return now
}

// sameButAddresses reports whether two states of a part differ in their
// addresses at most.
func sameButAddresses(a, b *RealisedRule) bool {
	ra, rb := a.Rule, b.Rule
	ra.From, ra.To, rb.From, rb.To = nil, nil, nil, nil
	return a.Name == b.Name && reflect.DeepEqual(ra, rb)
}

// republishMoved tells which rules got another priority because a neighbour
// needed room.
func (p *Policies) republishMoved(change *PolicyChange) {
	for block := range p.ranked {
		for _, s := range p.plans[block.policy].specs {
			if s.key.Direction != block.direction || len(s.parts) == 0 || p.dirty[s] {
				continue
			}
			priority := p.priorityOf(s)
			for part, r := range s.parts {
				if r.Rule.Priority != priority {
					now := *r
					now.Rule.Priority = priority
					s.parts[part] = p.replace(r, &now, change)
				}
			}
		}
	}
}

// isolate compares which Pods are isolated with which were.
func (p *Policies) isolate(change *PolicyChange) {
	now := map[isolationKey]Isolation{}
	for _, plan := range p.plans {
		for _, s := range plan.specs {
			if !s.isolates {
				continue
			}
			for _, m := range localMembers(s.local) {
				name := Name{m.pod.Key.Namespace, m.pod.Key.Name}
				now[isolationKey{name, s.key.Direction}] = Isolation{name, m.port, familyIPs(m.pod, p.config.Families), s.key.Direction}
			}
		}
	}
	for k, was := range p.isolated {
		if is, still := now[k]; !still || !was.equal(is) {
			change.Released = append(change.Released, was)
		}
	}
	for k, is := range now {
		if was, there := p.isolated[k]; !there || !was.equal(is) {
			change.Isolated = append(change.Isolated, is)
		}
	}
	p.isolated = now
	sortIsolations(change.Released)
	sortIsolations(change.Isolated)
}

func (i Isolation) equal(o Isolation) bool {
	return i.Port == o.Port && slices.Equal(i.IPs, o.IPs)
}

// compare orders rules by policy, direction, index and part.
func (k RuleKey) compare(o RuleKey) int {
	return cmp.Or(k.Policy.Compare(o.Policy), cmp.Compare(k.Direction, o.Direction),
		cmp.Compare(k.Index, o.Index), cmp.Compare(k.Part, o.Part))
}

func sortRules(rules []*RealisedRule) {
	slices.SortStableFunc(rules, func(a, b *RealisedRule) int { return a.Key.compare(b.Key) })
}

func sortIsolations(all []Isolation) {
	slices.SortFunc(all, func(a, b Isolation) int {
		return cmp.Or(cmp.Compare(a.Pod.Namespace, b.Pod.Namespace), cmp.Compare(a.Pod.Name, b.Pod.Name),
			cmp.Compare(a.Direction, b.Direction))
	})
}
