package policy

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/numbers"
	"github.com/antrail/antrail/tables"
)

// Policies compiles the policies of a cluster for one Node, change by change. It is not safe for
// concurrent use.
type Policies struct {
	config     Config
	cluster    *cluster.Cluster
	groups     func(cluster.Name) []uint32
	plans      map[cluster.Key]*policyPlan
	refused    map[cluster.Key]error // plans that failed, or for which no number was free
	peers      *podSets              // of all Pods
	local      *podSets              // of the Pods of this Node that have a port
	ids        *numbers.ConjunctionIDs
	vlans      *numbers.Allocator[*policySpec]
	restored   restoredRules
	priorities map[tables.PolicyKind]map[tables.Direction]*numbers.Priorities
	ranked     map[rankedBlock]numbers.Block // blocks that have priorities
	isolated   map[isolationKey]Isolation
	isolating  map[isolatedSet]int  // number of specs that isolate the set
	outlook    map[*policySpec]bool // specs that depend on more than Pods
	reports    reportRules
	dirty      map[*policySpec]bool
	shared     addressSets
	moved      map[*AddressSet]AddressDelta // sets whose Pods changed in this Update
	regroup    bool                         // isolations may have changed in this Update
	deltas     addressDeltas                // of slices compared in this Update
}

// rankedBlock names the rules of one direction of a policy.
type rankedBlock struct {
	policy    cluster.Key
	direction tables.Direction
}

type isolationKey struct {
	pod       cluster.Name
	direction tables.Direction
}

// isolatedSet is a set of Pods that are isolated in a direction.
type isolatedSet struct {
	pods      *podSet
	direction tables.Direction
}

// New makes Policies without a policy.
func New(c Config) *Policies {
	p := &Policies{
		config: c, cluster: cluster.EmptyCluster(),
		plans: map[cluster.Key]*policyPlan{}, refused: map[cluster.Key]error{},
		peers: newPodSets(c.Families), local: newPodSets(c.Families),
		ids: numbers.NewConjunctionIDs(c.Clock), vlans: numbers.NewAllocator[*policySpec](1, maxVLAN),
		priorities: map[tables.PolicyKind]map[tables.Direction]*numbers.Priorities{},
		ranked:     map[rankedBlock]numbers.Block{},
		isolated:   map[isolationKey]Isolation{},
		isolating:  map[isolatedSet]int{},
		outlook:    map[*policySpec]bool{},
		reports:    reportRules{map[*policySpec]bool{}, map[uint32]RuleCounters{}},
		dirty:      map[*policySpec]bool{},
		shared:     addressSets{byKey: map[string]*AddressSet{}},
	}
	for kind, zone := range map[tables.PolicyKind]numbers.Zone{tables.AntreaPolicy: numbers.AntreaZone, tables.BaselinePolicy: numbers.BaselineZone} {
		p.priorities[kind] = map[tables.Direction]*numbers.Priorities{
			tables.Ingress: numbers.NewPriorities(zone), tables.Egress: numbers.NewPriorities(zone),
		}
	}
	return p
}

// Update takes the next Input and returns the change of the rules. It keeps in, and what in
// points to.
func (p *Policies) Update(in Input) *Change {
	p.deltas, p.moved, p.regroup = addressDeltas{}, map[*AddressSet]AddressDelta{}, false
	old := p.cluster
	p.cluster, p.groups = in.Cluster, in.ServiceGroups
	p.peers.cluster, p.local.cluster = in.Cluster, in.Cluster
	change := &Change{}
	p.movePods(old, in.Changed, in.Ports) // input.go
	p.markChanged(old)
	p.replan(old, change)
	p.settleSets()
	p.realiseDirty()  // realise.go
	p.rank()          // rank.go
	p.publish(change) // publish.go
	p.publishIsolations(change)
	p.shared.sweep()
	return change
}

// Refused returns the policies that are not enforced, with the reasons.
func (p *Policies) Refused() map[cluster.Key]error { return maps.Clone(p.refused) }

// Rules returns all realised rules, by policy, direction, index and part.
func (p *Policies) Rules() (all []*RealisedRule) {
	for _, plan := range p.plans {
		for _, s := range plan.specs {
			all = slices.AppendSeq(all, maps.Values(s.parts))
		}
	}
	sortRules(all)
	return all
}

// Isolations returns the Pods of this Node that are isolated, by Pod and direction.
func (p *Policies) Isolations() []Isolation {
	all := slices.Collect(maps.Values(p.isolated))
	sortIsolations(all)
	return all
}

// replan makes new specs for policies that changed, or whose groups, Services or tiers changed.
func (p *Policies) replan(old *cluster.Cluster, change *Change) {
	p.replanK8s(old, change)
	p.replanAntrea(old, change)
}

func (p *Policies) replanK8s(old *cluster.Cluster, change *Change) {
	if sameMap(old.NetworkPolicies, p.cluster.NetworkPolicies) && sameMap(old.Namespaces, p.cluster.Namespaces) {
		return
	}
	dropGone(p, old.NetworkPolicies, p.cluster.NetworkPolicies, change)
	for _, k := range slices.SortedFunc(maps.Keys(p.cluster.NetworkPolicies), cluster.Key.Compare) {
		np, log := p.cluster.NetworkPolicies[k], p.cluster.LogsPolicies(k.Namespace)
		if np != old.NetworkPolicies[k] || log != old.LogsPolicies(k.Namespace) {
			p.replacePlan(k, planNetworkPolicy(np, log), nil, change)
		}
	}
}

// replanAntrea plans the policies that changed and those that were refused, because the cause of
// a refusal may have gone. If a Group, Service or Tier changed, it also plans all policies that
// depend on one.
func (p *Policies) replanAntrea(old *cluster.Cluster, change *Change) {
	dropGone(p, old.AntreaPolicies, p.cluster.AntreaPolicies, change)
	lenders := !equalMaps(old.Groups, p.cluster.Groups) || !equalMaps(old.Services, p.cluster.Services) ||
		!equalMaps(old.Tiers, p.cluster.Tiers)
	still := sameMap(old.AntreaPolicies, p.cluster.AntreaPolicies) && !lenders && len(p.refused) == 0
	if still || !p.config.Features.AntreaPolicy {
		return
	}
	for _, k := range slices.SortedFunc(maps.Keys(p.cluster.AntreaPolicies), cluster.Key.Compare) {
		ap, before, refused := p.cluster.AntreaPolicies[k], p.plans[k], p.refused[k] != nil
		if ap == old.AntreaPolicies[k] && !refused && !(lenders && before.borrows) {
			continue
		}
		plan, err := planAntreaPolicy(p.cluster, p.config.Features, ap)
		if err == nil && !refused && plan != nil && before != nil && samePlan(plan, before) {
			continue
		}
		p.replacePlan(k, plan, err, change)
	}
}

// dropGone drops the policies that the next snapshot lacks. It does so in order, because freed
// ids are reused in the order in which they were freed.
func dropGone[T any](p *Policies, old, now map[cluster.Key]*T, change *Change) {
	var gone []cluster.Key
	for k := range old {
		if now[k] == nil {
			gone = append(gone, k)
		}
	}
	slices.SortFunc(gone, cluster.Key.Compare)
	for _, k := range gone {
		p.dropPolicy(k, change)
	}
}

// sameMap reports whether two snapshots share one map, as they do for kinds without a change. It
// may be false for equal maps.
func sameMap[T any](a, b map[cluster.Key]T) bool {
	return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
}

// equalMaps reports whether two maps hold the same objects.
func equalMaps[T comparable](a, b map[cluster.Key]T) bool { return sameMap(a, b) || maps.Equal(a, b) }

// replacePlan replaces the plan of a policy. Parts of the same rule keep their ids.
func (p *Policies) replacePlan(k cluster.Key, plan *policyPlan, err error, change *Change) {
	delete(p.refused, k)
	if err != nil {
		p.refused[k] = err
		plan = &policyPlan{borrows: plan.borrows}
	}
	p.regroup = true
	old := p.plans[k]
	for _, s := range plan.specs {
		p.acquireSets(s)
		p.dirty[s] = true
	}
	p.plans[k] = plan
	if old != nil {
		p.handOverParts(k, old, plan, change)
	}
}

// acquireSets acquires the sets of a spec.
func (p *Policies) acquireSets(s *policySpec) {
	for _, c := range s.applied {
		set := p.subjectsFor(s)(c, s)
		s.local = append(s.local, set)
		if s.isolates {
			p.isolating[isolatedSet{set, s.key.Direction}]++
		}
	}
	if s.looksAround() {
		p.outlook[s] = true
	}
	if s.kind == tables.ReportPolicy {
		p.reports.specs[s] = true
	}
	choices := s.peers.choices
	if s.peers.any && s.key.Direction == tables.Egress && s.hasNamedPorts() {
		choices = []podChoice{{}} // any Pod may have the named ports
	}
	for _, c := range choices {
		s.remote = append(s.remote, p.peersFor(s)(c, s))
	}
}

// subjectsFor returns how a spec acquires sets of the Pods that it applies to.
func (p *Policies) subjectsFor(s *policySpec) func(podChoice, *policySpec) *podSet {
	if s.isolates || s.sharesSubjects() {
		return p.local.acquireSet
	}
	return p.local.acquireWatchedSet
}

// peersFor returns how a spec acquires sets of peers.
func (p *Policies) peersFor(s *policySpec) func(podChoice, *policySpec) *podSet {
	if s.splitsPeers() {
		return p.peers.acquireWatchedSet
	}
	return p.peers.acquireSet
}

// releaseSets releases the sets of a spec.
func (p *Policies) releaseSets(s *policySpec) {
	for _, set := range s.local {
		p.local.releaseSet(set, s)
		if s.isolates {
			p.releaseIsolation(isolatedSet{set, s.key.Direction})
		}
	}
	delete(p.outlook, s)
	delete(p.reports.specs, s)
	for _, set := range append(s.remote, s.relative...) {
		p.peers.releaseSet(set, s)
	}
	for _, u := range s.shared {
		p.shared.releaseSet(u)
	}
	s.local, s.remote, s.relative, s.shared = nil, nil, nil, nil
	delete(p.dirty, s)
}

// dropPolicy removes a policy.
func (p *Policies) dropPolicy(k cluster.Key, change *Change) {
	p.regroup = true
	if plan := p.plans[k]; plan != nil {
		delete(p.plans, k)
		p.handOverParts(k, plan, &policyPlan{}, change)
	}
	delete(p.refused, k)
}

// handOverParts hands the parts of an old plan to the successors of its rules, and removes the others.
func (p *Policies) handOverParts(k cluster.Key, old, next *policyPlan, change *Change) {
	successorOf := successors(old.specs, next.specs)
	for _, s := range old.specs {
		if successor := successorOf[s]; successor != nil {
			successor.parts = s.parts
			p.vlans.Transfer(s, successor)
		} else {
			for _, part := range slices.Sorted(maps.Keys(s.parts)) {
				p.removePart(s.parts[part], change)
			}
		}
		p.vlans.Free(s)
		p.releaseSets(s)
	}
	for _, d := range directions {
		p.unrank(k, d, next)
	}
}

// removePart publishes the removal of a part and frees its id.
func (p *Policies) removePart(r *RealisedRule, change *Change) {
	change.Removed = append(change.Removed, r)
	p.ids.Free(r.Rule.ID)
	delete(p.reports.decided, r.Rule.ID)
}

// samePlan reports whether two plans of a policy say the same.
func samePlan(a, b *policyPlan) bool {
	return reflect.DeepEqual(a.blocks, b.blocks) && slices.EqualFunc(a.specs, b.specs, func(s, t *policySpec) bool {
		return reflect.DeepEqual(s.wording(), t.wording())
	})
}

// wording returns a spec without its sets and parts.
func (s *policySpec) wording() policySpec {
	w := *s
	w.local, w.remote, w.relative, w.shared, w.parts, w.next = nil, nil, nil, nil, nil, nil
	return w
}

// realiseDirty computes the parts of dirty specs.
func (p *Policies) realiseDirty() {
	for _, s := range p.dirtySpecs() {
		if p.refused[s.key.Policy] != nil {
			continue
		}
		s.next = p.realise(s)
		if len(s.next) == 0 || len(s.l7) == 0 {
			p.vlans.Free(s)
			continue
		}
		p.restoreVLAN(s)
		if _, ok := p.vlans.Assign(s); !ok {
			p.refuse(s.key.Policy, fmt.Errorf("%s: %w", s.key.FieldPath(), errNoVLAN))
		}
	}
}

// dirtySpecs returns the dirty specs, in the order of their policies.
func (p *Policies) dirtySpecs() []*policySpec {
	return slices.SortedFunc(maps.Keys(p.dirty), func(a, b *policySpec) int { return a.key.compare(b.key) })
}

var errNoVLAN = errors.New("all VLAN ids of the application-aware engine are taken")

// refuse removes all rules of a policy for which no number is free. The next Update tries it
// again.
func (p *Policies) refuse(k cluster.Key, err error) {
	p.refused[k] = err
	for _, s := range p.plans[k].specs {
		s.next = nil
		p.dirty[s] = true
		p.vlans.Free(s)
	}
	for _, d := range directions {
		p.unrank(k, d, &policyPlan{})
	}
}

// maxVLAN is the highest VLAN id by which the application-aware engine distinguishes rules. IEEE
// 802.1Q reserves 0 and 4095.
const maxVLAN = 4094
