package policy

import (
	"cmp"
	"slices"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/numbers"
	"github.com/antrail/antrail/tables"
)

// The third stage of an Update assigns priorities to Antrea-native policies. As soon as one rule
// of a direction is in this Node's tables, all rules of that direction get priorities. They are
// a block, which rules of other policies do not interrupt.

var directions = [...]tables.Direction{tables.Ingress, tables.Egress}

// rank assigns priorities to directions of policies that have a part now, and frees those of
// directions without parts. More important policies come first, so a table fills from the top.
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
		return cmp.Or(p.blockOf(a).At(0).Compare(p.blockOf(b).At(0)), a.policy.Compare(b.policy), cmp.Compare(a.direction, b.direction))
	})
	for _, block := range waiting {
		if p.refused[block.policy] != nil {
			continue
		}
		want := p.blockOf(block)
		if err := p.zone(want, block.direction).Assign(want); err != nil {
			p.refuse(block.policy, err)
			continue
		}
		p.ranked[block] = want
	}
}

// dirtyBlocks returns the directions of Antrea-native policies with a dirty spec.
func (p *Policies) dirtyBlocks() map[rankedBlock]bool {
	blocks := map[rankedBlock]bool{}
	for s := range p.dirty {
		if s.kind != tables.K8sPolicy {
			blocks[rankedBlock{s.key.Policy, s.key.Direction}] = true
		}
	}
	return blocks
}

func (p *Policies) blockOf(b rankedBlock) numbers.Block { return p.plans[b.policy].blocks[b.direction] }

// active reports whether a direction of a policy has a part.
func (plan *policyPlan) active(d tables.Direction) bool {
	return slices.ContainsFunc(plan.specs, func(s *policySpec) bool {
		return s.key.Direction == d && (len(s.next) > 0 || s.next == nil && len(s.parts) > 0)
	})
}

// zone returns the priorities of a block's table.
func (p *Policies) zone(b numbers.Block, d tables.Direction) *numbers.Priorities {
	if b.Tier >= cluster.BaselineTier {
		return p.priorities[tables.BaselinePolicy][d]
	}
	return p.priorities[tables.AntreaPolicy][d]
}

// unrank frees the priorities of a block, unless the next plan of its policy wants the same.
func (p *Policies) unrank(k cluster.Key, d tables.Direction, next *policyPlan) {
	block := rankedBlock{k, d}
	if have, ranked := p.ranked[block]; ranked && have != next.blocks[d] {
		p.zone(have, d).Free(have)
		delete(p.ranked, block)
	}
}
