package store

import (
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/manifest"
)

// Faults that Antrea's webhooks refuse and that no file shows by itself: tiers of one rank,
// policies of a missing tier, groups in groups. Policies that antrail cannot enforce are
// refused here too. If an object of these kinds changes, one pass judges all of them, because
// they are few.
//
// If a webhook refuses an edit, the object stays as it was. The store does the same:
//
//  1. A refused object stays as it was in the last snapshot. Only an object that never was good
//     since the process began is in none. So no policy ends by a bad edit.
//  2. A deleted tier stays while a policy in force is in it, because Antrea refuses to delete
//     such a tier. So no policy ends because its tier is gone.
//  3. The objects of 1 and 2 are refused edits (refusededits.go).
//
// The choice between two tiers of one rank does not depend on their order of arrival. The
// objects that stay because of 1 and 2 do depend on the past.

// validatedKinds are the kinds that one pass judges together.
var validatedKinds = []cluster.Kind{cluster.KindTier, cluster.KindClusterGroup, cluster.KindGroup, cluster.KindClusterNetworkPolicy, cluster.KindAntreaNetworkPolicy}

// builtinTiers are the default tiers, which exist without a claim.
var builtinTiers = cluster.DefaultTiers()

// maxTiers is Antrea's limit of tiers in a cluster, the default ones included.
const maxTiers = 20

// validate judges the claimed objects again, and marks the keys whose judgement may have
// changed as touched.
func (s *Store) validate(touched map[cluster.Key]bool) {
	if !concerned(touched) {
		return
	}
	j := validation{store: s, now: s.Snapshot(), refused: map[cluster.Key]manifest.Problem{}, tiers: map[string]bool{}, held: map[cluster.Key]manifest.Problem{}}
	byKind := s.validatedKeys()
	policies := append(byKind[cluster.KindClusterNetworkPolicy], byKind[cluster.KindAntreaNetworkPolicy]...)
	j.validateTiers(byKind[cluster.KindTier])
	j.validateGroups(append(byKind[cluster.KindClusterGroup], byKind[cluster.KindGroup]...))
	j.holdTiers(policies)
	j.validatePolicies(policies)
	for _, keys := range []iter.Seq[cluster.Key]{maps.Keys(s.refused), maps.Keys(j.refused), maps.Keys(s.held), maps.Keys(j.held)} {
		for k := range keys {
			touched[k] = true
		}
	}
	s.refused, s.held = j.refused, j.held
	s.setEdits(s.edited, j.edits())
}

func concerned(touched map[cluster.Key]bool) bool {
	for k := range touched {
		if slices.Contains(validatedKinds, k.Kind) {
			return true
		}
	}
	return false
}

// validatedKeys returns the claimed keys of validatedKinds, in order.
func (s *Store) validatedKeys() map[cluster.Kind][]cluster.Key {
	byKind := map[cluster.Kind][]cluster.Key{}
	for k := range s.validated {
		byKind[k.Kind] = append(byKind[k.Kind], k)
	}
	for _, keys := range byKind {
		slices.SortFunc(keys, cluster.Key.Compare)
	}
	return byKind
}

// validation is one pass over validatedKinds.
type validation struct {
	store   *Store
	now     *cluster.Cluster // the last snapshot
	refused map[cluster.Key]manifest.Problem
	tiers   map[string]bool                  // names in force, without held tiers
	held    map[cluster.Key]manifest.Problem // deleted tiers that stay
}

func (j *validation) refuse(obj cluster.Object, field, format string, args ...any) {
	m := obj.Metadata()
	p := manifest.Problem{Source: m.Source, Key: m.Key, Field: field, Reason: fmt.Sprintf(format, args...)}
	if j.now.Object(m.Key) != nil {
		p.Reason += manifest.LastGoodStays
	}
	j.refused[m.Key] = p
}

// edits returns the refused edits of this pass.
func (j *validation) edits() RefusedEdits {
	edits := RefusedEdits{}
	for k, p := range j.refused {
		if j.now.Object(k) != nil {
			edits[k] = p.EditText()
		}
	}
	for k, p := range j.held {
		edits[k] = p.EditText()
	}
	return edits
}

// validateTiers keeps one tier of each rank: the default one, or else the first by name.
func (j *validation) validateTiers(keys []cluster.Key) {
	ranks := map[int32]string{}
	for name, priority := range cluster.DefaultTierPriorities {
		ranks[priority], j.tiers[name] = name, true
	}
	for _, k := range keys {
		tier := j.store.claims[k][0].(*cluster.Tier)
		other, taken := ranks[tier.Priority]
		switch {
		case taken && other == k.Name:
		case taken:
			j.refuseTier(tier, "spec.priority", "tier %s has priority %d already", other, tier.Priority)
		case len(ranks) >= maxTiers:
			j.refuseTier(tier, "", "a cluster has at most %d tiers", maxTiers)
		default:
			ranks[tier.Priority], j.tiers[k.Name] = k.Name, true
		}
	}
}

// validateGroups refuses groups whose child groups have children. So groups nest one level
// deep, and no group contains itself.
func (j *validation) validateGroups(keys []cluster.Key) {
	for _, k := range keys {
		g := j.store.claims[k][0].(*cluster.Group)
		for i, name := range g.ChildGroups {
			child := j.store.claims[cluster.Key{Kind: k.Kind, Namespace: k.Namespace, Name: name}]
			if len(child) > 0 && len(child[0].(*cluster.Group).ChildGroups) > 0 {
				j.refuse(g, fmt.Sprintf("spec.childGroups[%d]", i), "group %s has child groups itself", name)
				break
			}
		}
	}
}

// refuseTier refuses a tier. If the last snapshot has it, it stays in force.
func (j *validation) refuseTier(tier *cluster.Tier, field, format string, args ...any) {
	j.refuse(tier, field, format, args...)
	j.tiers[tier.Key.Name] = j.now.Object(tier.Key) != nil
}

// holdTiers finds the deleted tiers that a policy in force needs. A policy needs its old tier if
// its newest state names that tier or a missing one.
func (j *validation) holdTiers(policies []cluster.Key) {
	for _, k := range policies {
		was, ok := j.now.Object(k).(*cluster.AntreaPolicy)
		if !ok || j.tiers[was.Tier] || j.tiers[j.store.claims[k][0].(*cluster.AntreaPolicy).Tier] {
			continue
		}
		key := cluster.Key{Kind: cluster.KindTier, Name: was.Tier}
		if tier, known := j.now.Object(key), j.held[key] != (manifest.Problem{}); tier != nil && !known {
			j.held[key] = manifest.Problem{Source: tier.Metadata().Source, Key: key, Reason: fmt.Sprintf("it is deleted, and stays in force while policies are in it: %s is", k)}
		}
	}
}

// validatePolicies refuses policies that antrail cannot enforce, and those of a missing tier. A
// held tier accepts only policies that were in it.
func (j *validation) validatePolicies(keys []cluster.Key) {
	for _, k := range keys {
		p := j.store.claims[k][0].(*cluster.AntreaPolicy)
		was, _ := j.now.Object(k).(*cluster.AntreaPolicy)
		_, held := j.held[cluster.Key{Kind: cluster.KindTier, Name: p.Tier}]
		if err := manifest.Unbuilt(p); err != nil {
			j.refuse(p, "", "%s", err)
		} else if !j.tiers[p.Tier] && !(held && was != nil && was.Tier == p.Tier) {
			j.refuse(p, "spec.tier", "there is no tier %s", manifest.Clip(p.Tier))
		}
	}
}
