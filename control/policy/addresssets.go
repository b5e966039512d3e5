package policy

import (
	"cmp"
	"maps"
	"slices"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/tables"
)

// Sets of Pods, shared by all rules that choose Pods in the same way.
//
// A set is a choice (podChoice) and the Pods that it chooses now. It exists as long as some
// rule uses it, and learns of every Pod that comes, goes or changes. So a change of a Pod
// costs one check for each set, not one for each rule and Pod.
//
// The addresses of a set are a sorted slice, which is never written. A change makes another
// slice by one merge. A rule that holds the old slice still holds the old addresses, and
// compareAddresses finds the difference by one merge.
//
// There are two indexes of sets. That of all Pods is for peers. That of this Node's Pods with a
// port is for the subjects of rules.

// podChoice chooses Pods of one namespace or of chosen ones, by labels or by service account.
// A nil Selector does not restrict. With entities, it chooses ExternalEntities in the same
// way, and no Pods.
type podChoice struct {
	entities       bool
	namespace      string // empty: see namespaces
	namespaces     *cluster.Selector
	pods           *cluster.Selector
	serviceAccount string // empty: any
}

// key is equal for choices that mean the same.
func (c podChoice) key() string {
	key := c.namespace + "|" + selectorKey(c.namespaces) + "|" + selectorKey(c.pods) + "|" + c.serviceAccount
	if c.entities {
		return key + "|entities"
	}
	return key
}

// selectorKey gives no selector and the empty one the same key, because both match everything.
func selectorKey(s *cluster.Selector) string {
	if s == nil || s.Empty() {
		return "*"
	}
	return s.String()
}

// matches reports whether the choice contains a Pod.
func (c podChoice) matches(in *cluster.Cluster, p *cluster.Pod) bool {
	if c.entities != (p.Key.Kind == cluster.KindExternalEntity) || c.namespace != "" && p.Key.Namespace != c.namespace {
		return false
	}
	if c.serviceAccount != "" && serviceAccountOf(p) != c.serviceAccount {
		return false
	}
	if c.pods != nil && !c.pods.Matches(p.Labels) {
		return false
	}
	return c.namespaces == nil || c.namespaces.Matches(in.NamespaceLabels(p.Key.Namespace))
}

// serviceAccountOf is the account that a Pod runs under. The API server's default is "default".
func serviceAccountOf(p *cluster.Pod) string {
	return cmp.Or(p.ServiceAccount, "default")
}

// member is a Pod with its port of this Node's switch, or 0 without one.
type member struct {
	pod  *cluster.Pod
	port uint32
}

// podSet is a shared choice and the Pods it chooses.
type podSet struct {
	key       string // of choice
	choice    podChoice
	members   map[cluster.Key]member
	users     map[*policySpec]int
	watchers  map[*policySpec]bool // users that need more of a Pod than its addresses
	parents   map[*AddressSet]bool // sets that contain the addresses
	addresses []tables.Address     // of all members; sorted, without duplicates, never written
	stale     bool                 // addresses is out of date
	crowded   bool                 // two members claim the same address
}

// podSets is an index of sets over a population of Pods.
type podSets struct {
	cluster  *cluster.Cluster
	families []tables.Family
	pods     map[string]map[cluster.Key]member    // the population, by namespace
	labelled map[[2]string]map[cluster.Key]member // the population, by label and value
	sets     map[string]*podSet
	asking   map[[2]string]map[string]*podSet // sets by choice.label, then by key
	bulk     bool                             // many Pods change: rebuild addresses, do not merge
}

func newPodSets(families []tables.Family) *podSets {
	return &podSets{
		cluster: cluster.EmptyCluster(), families: families,
		pods: map[string]map[cluster.Key]member{}, labelled: map[[2]string]map[cluster.Key]member{},
		sets: map[string]*podSet{}, asking: map[[2]string]map[string]*podSet{},
	}
}

// acquireWatchedSet is acquireSet for a user that needs more of a Pod than its addresses.
func (s *podSets) acquireWatchedSet(c podChoice, user *policySpec) *podSet {
	set := s.acquireSet(c, user)
	set.watchers[user] = true
	return set
}

// acquireSet returns the set of a choice for a user. Each call needs a releaseSet.
func (s *podSets) acquireSet(c podChoice, user *policySpec) *podSet {
	key := c.key()
	set := s.sets[key]
	if set == nil {
		set = &podSet{
			key: key, choice: c, members: map[cluster.Key]member{}, stale: true,
			users: map[*policySpec]int{}, watchers: map[*policySpec]bool{}, parents: map[*AddressSet]bool{},
		}
		s.sets[key] = set
		label, _ := c.label()
		enter(s.asking, label, key, set)
		s.fill(set)
	}
	set.users[user]++
	return set
}

// releaseSet ends one use.
func (s *podSets) releaseSet(set *podSet, user *policySpec) {
	if set.users[user]--; set.users[user] == 0 {
		delete(set.users, user)
		delete(set.watchers, user)
	}
	if len(set.users) == 0 {
		delete(s.sets, set.key)
		label, _ := set.choice.label()
		removeName(s.asking, label, set.key)
	}
}

// fill finds the members of a new set. It searches the Pods with a label that the choice
// requires, or else the Pods of its namespaces.
func (s *podSets) fill(set *podSet) {
	c := set.choice
	if label, ok := c.label(); ok {
		s.fillFrom(set, s.labelled[label])
		return
	}
	if c.namespace != "" {
		s.fillFrom(set, s.pods[c.namespace])
		return
	}
	for ns, pods := range s.pods {
		if c.namespaces == nil || c.namespaces.Matches(s.cluster.NamespaceLabels(ns)) {
			s.fillFrom(set, pods)
		}
	}
}

// label is a label and value that every Pod of the choice has. If none is certain, it returns
// the zero pair and false.
func (c podChoice) label() (pair [2]string, ok bool) {
	if c.pods == nil {
		return pair, false
	}
	for _, r := range c.pods.Requirements() {
		if r.Op == cluster.In && len(r.Values) == 1 {
			return [2]string{r.Label, r.Values[0]}, true
		}
	}
	return pair, false
}

func (s *podSets) fillFrom(set *podSet, pods map[cluster.Key]member) {
	for name, m := range pods {
		if set.choice.matches(s.cluster, m.pod) {
			set.members[name] = m
		}
	}
}

// setPod adds a Pod to the population, or replaces its older state. It returns the sets that
// changed.
func (s *podSets) setPod(name cluster.Key, m member) []*podSet {
	old := s.pods[name.Namespace][name]
	if old == m {
		return nil
	}
	s.unlabel(name, old)
	enter(s.pods, name.Namespace, name, m)
	for label, value := range m.pod.Labels {
		enter(s.labelled, [2]string{label, value}, name, m)
	}
	return s.rematch(name, old.pod, m)
}

// names returns the Pods of the population.
func (s *podSets) names() (all []cluster.Key) {
	for _, ns := range s.pods {
		all = slices.AppendSeq(all, maps.Keys(ns))
	}
	return all
}

// removePod removes a Pod from the population. It returns the sets that changed.
func (s *podSets) removePod(name cluster.Key) []*podSet {
	old, there := s.pods[name.Namespace][name]
	if !there {
		return nil
	}
	s.unlabel(name, old)
	removeName(s.pods, name.Namespace, name)
	return s.rematch(name, old.pod, member{})
}

// unlabel removes a Pod from the index by labels.
func (s *podSets) unlabel(name cluster.Key, old member) {
	if old.pod == nil {
		return
	}
	for label, value := range old.pod.Labels {
		removeName(s.labelled, [2]string{label, value}, name)
	}
}

func enter[K, N comparable, V any](by map[K]map[N]V, k K, name N, v V) {
	if by[k] == nil {
		by[k] = map[N]V{}
	}
	by[k][name] = v
}

func removeName[K, N comparable, V any](by map[K]map[N]V, k K, name N) {
	delete(by[k], name)
	if len(by[k]) == 0 {
		delete(by, k)
	}
}

// renamespace matches the Pods of a namespace against the sets after its labels changed.
func (s *podSets) renamespace(namespace string) (touched []*podSet) {
	for name, m := range s.pods[namespace] {
		touched = append(touched, s.rematch(name, nil, m)...)
	}
	return touched
}

// rematch puts a Pod into the sets that choose it and takes it out of the others. It returns
// the sets that changed. before is an older state of the Pod; now.pod is nil if the Pod has gone.
func (s *podSets) rematch(name cluster.Key, before *cluster.Pod, now member) (touched []*podSet) {
	visit := func(label [2]string) {
		for _, set := range s.asking[label] {
			if s.settle(set, name, now) {
				touched = append(touched, set)
			}
		}
	}
	visit([2]string{})
	for _, p := range []*cluster.Pod{before, now.pod} {
		if p == nil {
			continue
		}
		for label, value := range p.Labels {
			visit([2]string{label, value})
		}
	}
	return touched
}

// settle puts a Pod into a set or takes it out, and reports whether the set changed.
func (s *podSets) settle(set *podSet, name cluster.Key, now member) bool {
	old, was := set.members[name]
	is := now.pod != nil && set.choice.matches(s.cluster, now.pod)
	if !was && !is || was && is && old == now {
		return false
	}
	var gone, come []tables.Address
	if was {
		gone = podAddresses(nil, old.pod, s.families)
		delete(set.members, name)
	}
	if is {
		come = podAddresses(nil, now.pod, s.families)
		set.members[name] = now
	}
	s.change(set, gone, come)
	return true
}

// change updates the addresses for one member's change. If that costs more than a rebuild, or
// its result is uncertain, it leaves the work to list.
func (s *podSets) change(set *podSet, gone, come []tables.Address) {
	if set.stale || slices.Equal(gone, come) {
		return
	}
	if s.bulk || set.crowded {
		set.stale = true
		return
	}
	next, ok := replaceAddresses(set.addresses, gone, come)
	set.addresses, set.stale = next, !ok
}

// list returns the addresses of the set's Pods, sorted. The caller must not write them.
func (set *podSet) list(families []tables.Family) []tables.Address {
	if set.stale {
		all := make([]tables.Address, 0, len(set.members))
		for _, m := range set.members {
			all = podAddresses(all, m.pod, families)
		}
		n := len(all)
		set.addresses, set.stale = sortAddresses(all), false
		set.crowded = len(set.addresses) < n
	}
	return set.addresses
}

// ports returns the ports of the set's Pods, sorted.
func (set *podSet) ports() []tables.Address {
	all := make([]tables.Address, 0, len(set.members))
	for _, m := range set.members {
		all = append(all, tables.Address{Port: m.port})
	}
	return sortAddresses(all)
}

// podAddresses appends the addresses of a Pod that are of the given families.
func podAddresses(to []tables.Address, p *cluster.Pod, families []tables.Family) []tables.Address {
	for _, ip := range familyIPs(p, families) {
		to = append(to, hostAddress(ip))
	}
	return to
}
