package policy

import (
	"cmp"
	"maps"
	"reflect"
	"slices"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/tables"
)

// The last stage of an Update compares the new parts of the specs with the old ones and
// publishes the difference.

// publish compares the parts of dirty specs with the old ones. Of all other specs it compares
// the priorities.
func (p *Policies) publish(change *Change) {
	for _, s := range p.dirtySpecs() {
		p.publishSpec(s, change)
	}
	p.republishMoved(change)
	p.publishSets(change)
	for _, byDirection := range p.priorities {
		for _, zone := range byDirection {
			zone.ForgetMoves()
		}
	}
	p.dirty = map[*policySpec]bool{}
	sortRules(change.Removed)
	sortRules(change.Added)
}

func (p *Policies) publishSpec(s *policySpec, change *Change) {
	parts := make(map[string]*RealisedRule, len(s.next))
	for _, part := range slices.Sorted(maps.Keys(s.parts)) {
		if s.next[part] == nil {
			p.removePart(s.parts[part], change)
		}
	}
	for _, part := range slices.Sorted(maps.Keys(s.next)) {
		now := s.next[part]
		now.Key = s.key
		now.Key.Part = part
		now.Rule.L7VLAN, now.Rule.Priority = uint16(p.vlans.Assigned[s]), p.priorityOf(s)
		parts[part] = p.replace(s.parts[part], now, change)
	}
	s.parts, s.next = parts, nil
}

// publishSets publishes the addresses that shared sets gained and lost. The addresses of a set
// that is new in this Update are published with the rules that use it.
func (p *Policies) publishSets(change *Change) {
	for u, d := range p.moved {
		if !d.Empty() && u.users > 0 {
			change.Sets = append(change.Sets, SetChange{u, d})
		}
	}
	slices.SortFunc(change.Sets, func(a, b SetChange) int { return cmp.Compare(a.Set.Number, b.Set.Number) })
}

func (p *Policies) priorityOf(s *policySpec) uint16 {
	if s.kind == tables.K8sPolicy {
		return 0
	}
	kind := s.kind
	if kind == tables.MulticastPolicy || kind == tables.ReportPolicy { // they share the numbering of their policies' other rules
		kind = tables.AntreaPolicy
	}
	return p.priorities[kind][s.key.Direction].Of(s.order)
}

// replace publishes the difference between the old part (nil: none) and the new one. It returns
// the part that is in force.
func (p *Policies) replace(old, now *RealisedRule, change *Change) *RealisedRule {
	if old == nil {
		now.Rule.ID = p.newID(now.Key)
		change.Added = append(change.Added, now)
		return now
	}
	now.Rule.ID = old.Rule.ID
	if old.Key != now.Key || !sameButAddresses(old, now) {
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

// sameButAddresses reports whether two states of a part differ at most in their addresses.
func sameButAddresses(a, b *RealisedRule) bool {
	ra, rb := a.Rule, b.Rule
	ra.From, ra.To, rb.From, rb.To = nil, nil, nil, nil
	return a.Name == b.Name && a.LogLabel == b.LogLabel && a.Peers == b.Peers && a.Subjects == b.Subjects && reflect.DeepEqual(ra, rb)
}

// republishMoved publishes the rules whose priority changed because a neighbour needed room.
func (p *Policies) republishMoved(change *Change) {
	for block, have := range p.ranked {
		if !p.zone(have, block.direction).HasMoved() {
			continue
		}
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

// publishIsolations publishes the Pods whose isolation began, changed or ended.
func (p *Policies) publishIsolations(change *Change) {
	if !p.regroup {
		return
	}
	now := map[isolationKey]Isolation{}
	for set := range p.isolating {
		for k, m := range set.pods.members {
			name := cluster.Name{Namespace: k.Namespace, Name: k.Name}
			now[isolationKey{name, set.direction}] = Isolation{
				Pod: name, Port: m.port, IPs: familyIPs(m.pod, p.config.Families),
				Direction: set.direction, Log: p.cluster.LogsPolicies(name.Namespace),
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

// releaseIsolation ends the isolation of a set by one spec.
func (p *Policies) releaseIsolation(set isolatedSet) {
	if p.isolating[set]--; p.isolating[set] == 0 {
		delete(p.isolating, set)
	}
}

func (i Isolation) equal(o Isolation) bool {
	return i.Port == o.Port && i.Log == o.Log && slices.Equal(i.IPs, o.IPs)
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
