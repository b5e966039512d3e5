package policy

import (
	"fmt"
	"maps"
	"slices"

	"github.com/antrail/antrail/control/numbers"
	"github.com/antrail/antrail/tables"
)

// Restoring the numbers of rules after a restart of the agent.

// maxRestoredID bounds the conjunction ids of an earlier process. Each lower id that no rule
// has costs an item in a list.
const maxRestoredID = 1 << 20

// restoredRules has the numbers of an earlier process that no rule has claimed yet.
type restoredRules struct {
	ids   map[RuleKey]uint32
	vlans map[RuleKey]*policySpec // each is a placeholder for the rule to come
}

// RuleNumber is a number and the rule that has it.
type RuleNumber struct {
	Rule RuleKey
	ID   uint32
}

// RulePriority is the priority of a rank of rules in the table of a kind of policies and a
// direction. They are listed by falling priority.
type RulePriority struct {
	Kind      tables.PolicyKind
	Direction tables.Direction
	Tier      int32
	Rank      float64 // the policy's own priority
	Index     int
	Priority  uint16
}

// RuleNumbers are the numbers of all rules, as plain data for JSON.
type RuleNumbers struct {
	// Rules are conjunction ids. VLANs are ids of rules with application protocols, whose
	// Part is empty.
	Rules, VLANs []RuleNumber
	Priorities   []RulePriority
}

// Numbers returns the numbers of all rules.
func (p *Policies) Numbers() (m RuleNumbers) {
	for _, r := range p.Rules() {
		m.Rules = append(m.Rules, RuleNumber{r.Key, r.Rule.ID})
	}
	for s, id := range p.vlans.Assigned {
		m.VLANs = append(m.VLANs, RuleNumber{s.key, id})
	}
	for kind, zones := range p.priorities {
		for d, z := range zones {
			for o, priority := range z.All() {
				m.Priorities = append(m.Priorities, RulePriority{kind, d, o.Tier, o.Priority, o.Index, priority})
			}
		}
	}
	return m
}

// Restore takes over the numbers of an earlier process. It must precede the first Update. The
// error names a number that is out of range or given twice.
func (p *Policies) Restore(m *RuleNumbers) error {
	p.restored = restoredRules{ids: map[RuleKey]uint32{}, vlans: map[RuleKey]*policySpec{}}
	if err := p.restoreIDs(m.Rules); err != nil {
		return err
	}
	for _, n := range m.VLANs {
		s := &policySpec{key: n.Rule}
		if err := p.vlans.Restore(s, n.ID); err != nil {
			return fmt.Errorf("VLAN of %s %s: %w", n.Rule.Policy, n.Rule.FieldPath(), err)
		}
		p.restored.vlans[n.Rule] = s
	}
	for _, r := range m.Priorities {
		zone := p.priorities[r.Kind][r.Direction]
		if zone == nil || !zone.Restore(numbers.Order{Tier: r.Tier, Priority: r.Rank, Index: r.Index}, r.Priority) {
			return fmt.Errorf("priority %d of rules of rank %v: it is out of order", r.Priority, r.Rank)
		}
	}
	return nil
}

// restoreIDs keeps conjunction ids for their rules. Ids between them rest as if they were freed
// now.
func (p *Policies) restoreIDs(all []RuleNumber) error {
	taken := map[uint32]bool{}
	for _, n := range all {
		if _, twice := p.restored.ids[n.Rule]; twice || taken[n.ID] || n.ID < numbers.FirstConjunctionID || n.ID > maxRestoredID {
			return fmt.Errorf("conjunction id %d of %s %s: it is given twice, or not between %d and %d",
				n.ID, n.Rule.Policy, n.Rule.FieldPath(), numbers.FirstConjunctionID, maxRestoredID)
		}
		taken[n.ID], p.restored.ids[n.Rule] = true, n.ID
	}
	p.ids.Restore(taken)
	return nil
}

// newID is the conjunction id of a new part: the id that it had in an earlier process, or an
// id that no rule has.
func (p *Policies) newID(k RuleKey) uint32 {
	if id, ok := p.restored.ids[k]; ok {
		delete(p.restored.ids, k)
		return id
	}
	return p.ids.Assign()
}

// restoreVLAN gives a rule the VLAN id that it had in an earlier process.
func (p *Policies) restoreVLAN(s *policySpec) {
	if before := p.restored.vlans[s.key]; before != nil {
		p.vlans.Transfer(before, s)
		delete(p.restored.vlans, s.key)
	}
}

// FreeUnclaimed frees the restored numbers that no rule has taken.
func (p *Policies) FreeUnclaimed() {
	for _, id := range slices.Sorted(maps.Values(p.restored.ids)) {
		p.ids.Free(id)
	}
	p.restored = restoredRules{}
	p.vlans.FreeUnclaimed()
	for _, kind := range []tables.PolicyKind{tables.AntreaPolicy, tables.BaselinePolicy} {
		for _, d := range directions {
			p.priorities[kind][d].FreeUnclaimed()
		}
	}
}
