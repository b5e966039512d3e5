package control

import (
	"fmt"
	"slices"
)

// What needs several objects to be judged, as Antrea's webhooks judge it: tiers
// of one rank, policies of a tier that does not exist, groups in groups. Here
// it does not matter which came first. All of it is judged anew when one object
// of these kinds changes; there are few of them, and it is one pass.

// judgedKinds are the kinds that are judged together.
var judgedKinds = []Kind{KindTier, KindClusterGroup, KindGroup, KindClusterNetworkPolicy, KindAntreaNetworkPolicy}

// builtinTiers are the default tiers, which are there without being claimed.
var builtinTiers = defaultTiers()

// maxTiers is how many tiers Antrea lets a cluster have, its own included.
const maxTiers = 20

// judge renews what is refused, and adds the keys whose judgement changed to
// the touched ones.
func (s *Store) judge(touched map[Key]bool) {
	if !concerned(touched) {
		return
	}
	j := judgement{store: s, refused: map[Key]Problem{}, tiers: map[string]bool{}}
	byKind := s.judgedKeys()
	j.judgeTiers(byKind[KindTier])
	j.judgeGroups(append(byKind[KindClusterGroup], byKind[KindGroup]...))
	j.judgePolicies(append(byKind[KindClusterNetworkPolicy], byKind[KindAntreaNetworkPolicy]...))
	for k := range s.refused {
		touched[k] = true
	}
	for k := range j.refused {
		touched[k] = true
	}
	s.refused = j.refused
}

func concerned(touched map[Key]bool) bool {
	for k := range touched {
		if slices.Contains(judgedKinds, k.Kind) {
			return true
		}
	}
	return false
}

// judgedKeys are the claimed keys of the kinds that are judged, in order.
func (s *Store) judgedKeys() map[Kind][]Key {
	byKind := map[Kind][]Key{}
	for k := range s.judged {
		byKind[k.Kind] = append(byKind[k.Kind], k)
	}
	for _, keys := range byKind {
		slices.SortFunc(keys, Key.Compare)
	}
	return byKind
}

// judgement is one pass over the kinds that are judged.
type judgement struct {
	store   *Store
	refused map[Key]Problem
	tiers   map[string]bool // names in force
}

func (j *judgement) refuse(obj Object, field, format string, args ...any) {
	m := obj.Metadata()
	j.refused[m.Key] = Problem{Source: m.Source, Key: m.Key, Field: field, Reason: fmt.Sprintf(format, args...)}
}

// judgeTiers keeps one tier of each rank: a default one, else the first by
// name.
func (j *judgement) judgeTiers(keys []Key) {
	ranks := map[int32]string{}
	for name, priority := range defaultTierPriorities {
		ranks[priority], j.tiers[name] = name, true
	}
	for _, k := range keys {
		tier := j.store.claims[k][0].(*Tier)
		other, taken := ranks[tier.Priority]
		switch {
		case taken && other == k.Name:
		case taken:
			j.refuse(tier, "spec.priority", "tier %s has priority %d already", other, tier.Priority)
		case len(ranks) >= maxTiers:
			j.refuse(tier, "", "a cluster has at most %d tiers", maxTiers)
		default:
			ranks[tier.Priority], j.tiers[k.Name] = k.Name, true
		}
	}
}

// judgeGroups refuses groups whose child groups have children themselves. So a
// group holds others one level deep, and never itself.
func (j *judgement) judgeGroups(keys []Key) {
	for _, k := range keys {
		g := j.store.claims[k][0].(*Group)
		for i, name := range g.ChildGroups {
			child := j.store.claims[Key{k.Kind, k.Namespace, name}]
			if len(child) > 0 && len(child[0].(*Group).ChildGroups) > 0 {
				j.refuse(g, fmt.Sprintf("spec.childGroups[%d]", i), "group %s has child groups itself", name)
				break
			}
		}
	}
}

func (j *judgement) judgePolicies(keys []Key) {
	for _, k := range keys {
		p := j.store.claims[k][0].(*AntreaPolicy)
		if !j.tiers[p.Tier] {
			j.refuse(p, "spec.tier", "there is no tier %s", clip(p.Tier))
		}
	}
}
