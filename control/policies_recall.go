package control

import (
	"fmt"
	"maps"
	"slices"

	"github.com/antrail/antrail/tables"
)

// The numbers of rules, remembered and recalled (recall.go).

// maxRecalledID bounds the conjunction ids of a process before: those between
// that no rule has are free, and there is an item for each.
const maxRecalledID = 1 << 20

// recalledRules are the numbers of a process before that no rule has asked for.
type recalledRules struct {
	ids   map[RuleKey]uint32
	vlans map[RuleKey]*policySpec // each stands in for the rule to come
}

// remember notes the numbers of all rules.
func (p *Policies) remember(m *Memory) {
	for _, r := range p.Rules() {
		m.Rules = append(m.Rules, RuleNumber{r.Key, r.Rule.ID})
	}
	for s, id := range p.vlans.of {
		m.VLANs = append(m.VLANs, RuleNumber{s.key, id})
	}
	for kind, zones := range p.priorities {
		for d, z := range zones {
			for _, r := range z.placed {
				m.Priorities = append(m.Priorities, RulePriority{kind, d, r.tier, r.ruleOrder.priority, r.index, r.priority})
			}
		}
	}
}

// recall takes over numbers before the first Update.
func (p *Policies) recall(m *Memory) error {
	p.recalled = recalledRules{ids: map[RuleKey]uint32{}, vlans: map[RuleKey]*policySpec{}}
	if err := p.recallIDs(m.Rules); err != nil {
		return err
	}
	for _, n := range m.VLANs {
		s := &policySpec{key: n.Rule}
		if err := p.vlans.recall(s, n.ID); err != nil {
			return fmt.Errorf("VLAN of %s %s: %w", n.Rule.Policy, n.Rule.describe(), err)
		}
		p.recalled.vlans[n.Rule] = s
	}
	for _, r := range m.Priorities {
		zone := p.priorities[r.Kind][r.Direction]
		if zone == nil || !zone.recall(ruleOrder{r.Tier, r.Rank, r.Index}, r.Priority) {
			return fmt.Errorf("priority %d of rules of rank %v: it is out of order", r.Priority, r.Rank)
		}
	}
	return nil
}

// recallIDs keeps conjunction ids for their rules; those between rest as if
// they were released now.
func (p *Policies) recallIDs(all []RuleNumber) error {
	taken := map[uint32]bool{}
	for _, n := range all {
		if _, twice := p.recalled.ids[n.Rule]; twice || taken[n.ID] || n.ID < firstConjunctionID || n.ID > maxRecalledID {
			return fmt.Errorf("conjunction id %d of %s %s: it is given twice, or not between %d and %d",
				n.ID, n.Rule.Policy, n.Rule.describe(), firstConjunctionID, maxRecalledID)
		}
		taken[n.ID], p.recalled.ids[n.Rule] = true, n.ID
		p.ids.next = max(p.ids.next, n.ID+1)
	}
	for id := uint32(firstConjunctionID); id < p.ids.next; id++ {
		if !taken[id] {
			p.ids.release(id)
		}
	}
	return nil
}

// newID is the conjunction id of a part that is new here: the one it had in a
// process before, or one that nobody has.
func (p *Policies) newID(k RuleKey) uint32 {
	if id, ok := p.recalled.ids[k]; ok {
		delete(p.recalled.ids, k)
		return id
	}
	return p.ids.allocate()
}

// recallVLAN gives a rule the VLAN id that it had in a process before.
func (p *Policies) recallVLAN(s *policySpec) {
	if before := p.recalled.vlans[s.key]; before != nil {
		p.vlans.pass(before, s)
		delete(p.recalled.vlans, s.key)
	}
}

// forgetRecalled frees what no rule has asked for.
func (p *Policies) forgetRecalled() {
	for _, id := range slices.Sorted(maps.Values(p.recalled.ids)) {
		p.ids.release(id)
	}
	p.recalled = recalledRules{}
	p.vlans.forgetUnclaimed()
	for _, kind := range []tables.PolicyKind{tables.AntreaPolicy, tables.BaselinePolicy} {
		for _, d := range directions {
			zone := p.priorities[kind][d]
			zone.placed = slices.DeleteFunc(zone.placed, func(r placedRule) bool { return r.users == 0 })
		}
	}
}

// recall places a rank that nobody uses yet; false when it would not keep the
// order. It is told the ranks of a table in any order.
func (p *priorities) recall(o ruleOrder, priority uint16) bool {
	pos := p.find(o)
	above, below := p.bounds(pos)
	if pos < len(p.placed) && p.placed[pos].ruleOrder == o || int(priority) >= above || int(priority) <= below {
		return false
	}
	p.placed = slices.Insert(p.placed, pos, placedRule{o, priority, 0})
	return true
}
