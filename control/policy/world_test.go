package policy

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/tables"
)

// world is a cluster, with the Policies of its Node "here".
type world struct {
	*cluster.Cluster
	ports    map[cluster.Key]uint32
	groups   map[cluster.Name][]uint32
	now      time.Time
	policies *Policies
	rules    map[RuleKey]*RealisedRule // the sum of the published changes
	sets     map[*AddressSet][]string  // likewise, for the sets of rules
	isolated map[isolationKey]Isolation
}

func newWorld() *world {
	w := &world{
		Cluster: cluster.EmptyCluster(), ports: map[cluster.Key]uint32{}, groups: map[cluster.Name][]uint32{},
		rules: map[RuleKey]*RealisedRule{}, sets: map[*AddressSet][]string{}, isolated: map[isolationKey]Isolation{},
	}
	w.policies = w.compiler()
	return w
}

func (w *world) compiler() *Policies {
	return New(Config{
		Families: []tables.Family{tables.IPv4},
		Features: tables.Features{AntreaPolicy: true, L7Policy: true},
		Clock:    func() time.Time { return w.now },
	})
}

func (w *world) input() Input {
	return Input{
		Cluster: w.snapshot(), Ports: maps.Clone(w.ports),
		ServiceGroups: func(n cluster.Name) []uint32 { return w.groups[n] },
	}
}

// snapshot copies the cluster, so that the next change makes another one.
func (w *world) snapshot() *cluster.Cluster {
	c := *w.Cluster
	for _, k := range []cluster.Kind{cluster.KindNode, cluster.KindNamespace, cluster.KindPod, cluster.KindExternalEntity, cluster.KindService, cluster.KindNetworkPolicy, cluster.KindClusterNetworkPolicy, cluster.KindTier, cluster.KindGroup} {
		c.Set(k).Own()
	}
	return &c
}

func (w *world) put(objects ...cluster.Object) {
	for _, o := range objects {
		w.Set(o.Metadata().Key.Kind).Put(o)
	}
}

func (w *world) remove(k cluster.Key) { w.Set(k.Kind).Remove(k) }

// update compiles the world and applies the published change to w.rules.
func (w *world) update(t *testing.T) *Change {
	t.Helper()
	change := w.policies.Update(w.input())
	for _, c := range change.Sets {
		w.moveSet(t, c)
	}
	for _, r := range change.Removed {
		if w.rules[r.Key] != r {
			t.Fatalf("%v is removed, but differs from the published rule", r.Key)
		}
		delete(w.rules, r.Key)
	}
	for _, r := range change.Added {
		if w.rules[r.Key] != nil {
			t.Fatalf("%v is added twice", r.Key)
		}
		w.rules[r.Key] = r
		for _, set := range r.sets() {
			if _, told := w.sets[set]; !told {
				w.sets[set] = addressTexts(set.Addresses())
			}
		}
	}
	w.checkSets(t)
	for _, c := range change.Changed {
		w.checkDelta(t, c)
		w.rules[c.Key] = c.RealisedRule
	}
	for _, i := range change.Released {
		delete(w.isolated, isolationKey{i.Pod, i.Direction})
	}
	for _, i := range change.Isolated {
		w.isolated[isolationKey{i.Pod, i.Direction}] = i
	}
	return change
}

// moveSet applies a change to the addresses published for a set. It ignores a set that no rule
// has had.
func (w *world) moveSet(t *testing.T, c SetChange) {
	t.Helper()
	if _, told := w.sets[c.Set]; !told {
		return
	}
	for _, a := range addressTexts(c.Removed) {
		i, found := slices.BinarySearch(w.sets[c.Set], a)
		if !found {
			t.Fatalf("a set loses %s, which it did not have", a)
		}
		w.sets[c.Set] = slices.Delete(w.sets[c.Set], i, i+1)
	}
	w.sets[c.Set] = append(w.sets[c.Set], addressTexts(c.Added)...)
	slices.Sort(w.sets[c.Set])
}

// checkSets compares the addresses published for the sets of rules with their contents.
func (w *world) checkSets(t *testing.T) {
	t.Helper()
	for _, r := range w.rules {
		for _, set := range r.sets() {
			if told, holds := w.sets[set], addressTexts(set.Addresses()); !slices.Equal(told, holds) {
				t.Fatalf("%v: the changes of its set %d give %v, it has %v", r.Key, set.Number, told, holds)
			}
		}
	}
}

// sets returns the AddressSets of a rule.
func (r *RealisedRule) sets() []*AddressSet {
	return slices.DeleteFunc([]*AddressSet{r.Peers, r.Subjects}, func(u *AddressSet) bool { return u == nil })
}

// from and to are the addresses of a rule's clauses, shared or its own.
func (r *RealisedRule) from() []tables.Address { return r.clause(tables.ClauseFrom, r.Rule.From) }
func (r *RealisedRule) to() []tables.Address   { return r.clause(tables.ClauseTo, r.Rule.To) }

func (r *RealisedRule) clause(c tables.Clause, own []tables.Address) []tables.Address {
	switch {
	case r.Peers != nil && c == PeerClause(r.Key.Direction):
		return r.Peers.Addresses()
	case r.Subjects != nil && c == SubjectClause(r.Key.Direction):
		return r.Subjects.Addresses()
	}
	return own
}

// checkDelta applies a change of addresses to the rule before.
func (w *world) checkDelta(t *testing.T, c AddressChange) {
	t.Helper()
	old := w.rules[c.Key]
	if old == nil || old.Rule.ID != c.Rule.ID {
		t.Fatalf("%v changed, but there was no such rule with id %d", c.Key, c.Rule.ID)
	}
	for _, clause := range []struct {
		before, after []tables.Address
		delta         AddressDelta
	}{{old.Rule.From, c.Rule.From, c.From}, {old.Rule.To, c.Rule.To, c.To}} {
		got := map[string]bool{}
		for _, a := range clause.before {
			got[addressText(a)] = true
		}
		for _, a := range clause.delta.Removed {
			if !got[addressText(a)] {
				t.Fatalf("%v loses %s, which it did not have", c.Key, addressText(a))
			}
			delete(got, addressText(a))
		}
		for _, a := range clause.delta.Added {
			got[addressText(a)] = true
		}
		if want := addressTexts(clause.after); !slices.Equal(slices.Sorted(maps.Keys(got)), want) {
			t.Fatalf("%v: the change gives %v, the rule has %v", c.Key, got, want)
		}
	}
}

func addressText(a tables.Address) string {
	switch {
	case a.Port != 0:
		return fmt.Sprintf("port %d", a.Port)
	case a.Group != 0:
		return fmt.Sprintf("group %d", a.Group)
	case a.Service != nil:
		return fmt.Sprintf("service %d", a.Service.Group)
	}
	return a.Prefix.String()
}

func addressTexts(all []tables.Address) []string {
	words := []string{}
	for _, a := range all {
		words = append(words, addressText(a))
	}
	slices.Sort(words)
	return words
}

// Objects.

func labels(pairs ...string) cluster.Labels {
	l := cluster.Labels{}
	for i := 0; i < len(pairs); i += 2 {
		l[pairs[i]] = pairs[i+1]
	}
	return l
}

func selector(pairs ...string) *cluster.Selector {
	s := cluster.SelectLabels(labels(pairs...))
	return &s
}

func namespace(name string, pairs ...string) *cluster.Namespace {
	l := labels(pairs...)
	l[cluster.NamespaceNameLabel] = name
	return &cluster.Namespace{Meta: cluster.Meta{Key: cluster.Key{Kind: cluster.KindNamespace, Name: name}, Labels: l}}
}

func pod(ns, name, ip string, l cluster.Labels, ports ...cluster.ContainerPort) *cluster.Pod {
	return &cluster.Pod{
		Meta: cluster.Meta{Key: cluster.Key{Kind: cluster.KindPod, Namespace: ns, Name: name}, Labels: l},
		IPs:  []netip.Addr{netip.MustParseAddr(ip)}, Phase: cluster.PodRunning, Ports: ports,
	}
}

// here puts a Pod on this Node, at a port of the switch.
func (w *world) here(port uint32, p *cluster.Pod) {
	w.put(p)
	w.ports[p.Key] = port
}

func tcp(port uint16) cluster.PolicyPort {
	return cluster.PolicyPort{Protocol: cluster.TCP, Port: cluster.PortRef{Number: port}}
}

func namedTCP(name string) cluster.PolicyPort {
	return cluster.PolicyPort{Protocol: cluster.TCP, Port: cluster.PortRef{Name: name}}
}

func block(cidr string, except ...string) *cluster.IPBlock {
	b := &cluster.IPBlock{CIDR: netip.MustParsePrefix(cidr)}
	for _, e := range except {
		b.Except = append(b.Except, netip.MustParsePrefix(e))
	}
	return b
}

// probe is a first packet.
type probe struct {
	from, to string // addresses
	proto    cluster.Protocol
	port     uint16
}

// verdict evaluates a packet by the rules, one after the other, without tables.
func (w *world) verdict(pk probe) string {
	for _, d := range []tables.Direction{tables.Egress, tables.Ingress} {
		if v := w.directed(d, pk); v != tables.Allow {
			return map[tables.Action]string{tables.Drop: "drop", tables.Reject: "reject"}[v]
		}
	}
	return "allow"
}

func (w *world) directed(d tables.Direction, pk probe) tables.Action {
	if r := w.first(d, tables.AntreaPolicy, pk); r != nil && r.Action != tables.Pass {
		return r.Action
	}
	if w.first(d, tables.K8sPolicy, pk) != nil {
		return tables.Allow
	}
	for _, i := range w.isolated {
		self := pk.from
		if d == tables.Ingress {
			self = pk.to
		}
		if i.Direction == d && slices.Contains(i.IPs, netip.MustParseAddr(self)) {
			return tables.Drop
		}
	}
	if r := w.first(d, tables.BaselinePolicy, pk); r != nil {
		return r.Action
	}
	return tables.Allow
}

// first is the matching rule of highest priority.
func (w *world) first(d tables.Direction, kind tables.PolicyKind, pk probe) (best *tables.Rule) {
	for _, realised := range w.rules {
		r := &realised.Rule
		if r.Direction != d || r.Kind != kind || best != nil && best.Priority >= r.Priority {
			continue
		}
		if (r.AnyFrom || w.has(realised.from(), pk.from)) && (r.AnyTo || w.has(realised.to(), pk.to)) && serves(r.Services, pk) {
			best = r
		}
	}
	return best
}

func (w *world) has(addresses []tables.Address, ip string) bool {
	addr := netip.MustParseAddr(ip)
	return slices.ContainsFunc(addresses, func(a tables.Address) bool {
		return a.Prefix.IsValid() && a.Prefix.Contains(addr) || a.Port != 0 && w.portOf(addr) == a.Port
	})
}

func (w *world) portOf(ip netip.Addr) uint32 {
	for k, port := range w.ports {
		if p := w.Pods[k]; p != nil && slices.Contains(p.IPs, ip) {
			return port
		}
	}
	return 0
}

func serves(matches []tables.L4Match, pk probe) bool {
	return len(matches) == 0 || slices.ContainsFunc(matches, func(m tables.L4Match) bool {
		last := max(m.Port, m.EndPort)
		return m.Proto == uint8(pk.proto) && (m.Port == 0 || pk.port >= m.Port && pk.port <= last)
	})
}

func addrs(texts ...string) (all []netip.Addr) {
	for _, s := range texts {
		all = append(all, netip.MustParseAddr(s))
	}
	return all
}

func prefixes(texts ...string) (all []netip.Prefix) {
	for _, s := range texts {
		all = append(all, netip.MustParsePrefix(s))
	}
	return all
}
