package policy

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/numbers"
	"github.com/antrail/antrail/tables"
)

// TestChangesAddUp: after any series of changes, the published changes add up to the rules of
// a new Policies that sees the last state only. Ids may differ, and priorities may differ as
// long as their order is the same.
func TestChangesAddUp(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			w := shop()
			for step := range 150 {
				for range 1 + rng.IntN(3) {
					w.mutate(rng)
				}
				w.now = w.now.Add(time.Duration(rng.IntN(4)) * time.Second)
				w.update(t)
				w.checkFresh(t, step)
			}
		})
	}
}

// mutate makes one change in the world.
func (w *world) mutate(rng *rand.Rand) {
	spaces, apps := []string{"shop", "ops", "lab"}, []string{"web", "api", "db"}
	name := cluster.Name{Namespace: pick(rng, spaces), Name: pick(rng, apps)}
	switch rng.IntN(9) {
	case 0, 1:
		p := pod(name.Namespace, name.Name, fmt.Sprintf("10.0.0.%d", 1+rng.IntN(30)), labels("app", pick(rng, apps)),
			cluster.ContainerPort{Name: "http", Number: uint16(80 + rng.IntN(2)), Protocol: cluster.TCP})
		p.HostNetwork = rng.IntN(8) == 0
		w.put(p)
		if rng.IntN(2) == 0 {
			w.ports[p.Key] = uint32(1 + rng.IntN(40))
		}
	case 2:
		w.remove(cluster.Key{Kind: cluster.KindPod, Namespace: name.Namespace, Name: name.Name})
		delete(w.ports, cluster.Key{Kind: cluster.KindPod, Namespace: name.Namespace, Name: name.Name})
	case 3:
		w.put(namespace(name.Namespace, "team", pick(rng, []string{"a", "b"})))
	case 4:
		w.put(randomNetworkPolicy(rng, name))
	case 5:
		w.remove(cluster.Key{Kind: cluster.KindNetworkPolicy, Namespace: name.Namespace, Name: name.Name})
	case 6:
		w.put(randomAntreaPolicy(rng, name.Name))
	case 7:
		w.remove(cluster.Key{Kind: cluster.KindClusterNetworkPolicy, Name: name.Name})
	case 8:
		w.put(group("g", cluster.Group{Pods: selector("app", pick(rng, apps)), Namespaces: selector("team", "a")}))
	}
}

func pick[T any](rng *rand.Rand, from []T) T { return from[rng.IntN(len(from))] }

func randomPorts(rng *rand.Rand) []cluster.PolicyPort {
	return pick(rng, [][]cluster.PolicyPort{nil, {tcp(80)}, {namedTCP("http")}, {namedTCP("http"), tcp(22)}})
}

func randomNetworkPolicy(rng *rand.Rand, n cluster.Name) *cluster.NetworkPolicy {
	var rules []cluster.NetworkPolicyRule
	for range rng.IntN(3) {
		rules = append(rules, cluster.NetworkPolicyRule{Peers: pick(rng, [][]cluster.NetworkPolicyPeer{
			nil, {{Pods: selector()}}, {{Namespaces: selector("team", "a")}},
			{{Pods: selector("app", "web"), Namespaces: selector()}, {IPBlock: block("10.0.0.0/28", "10.0.0.4/30")}},
		}), Ports: randomPorts(rng)})
	}
	return &cluster.NetworkPolicy{
		Meta: cluster.Meta{Key: cluster.Key{Kind: cluster.KindNetworkPolicy, Namespace: n.Namespace, Name: n.Name}}, Pods: *pick(rng, []*cluster.Selector{selector(), selector("app", "web")}),
		Ingress: rng.IntN(3) > 0, Egress: rng.IntN(3) > 0, IngressRules: rules, EgressRules: rules,
	}
}

func randomAntreaPolicy(rng *rand.Rand, name string) *cluster.AntreaPolicy {
	rules := func() (all []cluster.PolicyRule) {
		for range rng.IntN(4) {
			all = append(all, cluster.PolicyRule{
				Action: pick(rng, []cluster.RuleAction{cluster.ActionAllow, cluster.ActionDrop, cluster.ActionReject}), Ports: randomPorts(rng),
				Peers: pick(rng, [][]cluster.PolicyPeer{
					nil, {{Group: "g"}}, {{Pods: selector("app", "db")}}, {{Nodes: selector()}, {IPBlock: block("10.0.0.0/29")}},
					{{PeerNamespaces: &cluster.PeerNamespaces{Self: true}}}, {{PeerNamespaces: &cluster.PeerNamespaces{SameLabels: []string{"team"}}, Pods: selector("app", "api")}},
				}),
			})
		}
		return all
	}
	ap := cnp(name, pick(rng, []string{"", "emergency", "baseline", "missing"}), float64(1+rng.IntN(6))/2, rules(), rules())
	ap.AppliedTo = pick(rng, [][]cluster.AppliedTo{ap.AppliedTo, {{Namespaces: selector()}}, {{Group: "g"}}})
	return ap
}

// checkFresh compares the rules with those of new Policies.
func (w *world) checkFresh(t *testing.T, step int) {
	t.Helper()
	fresh := w.compiler()
	fresh.Update(w.input())
	want := fresh.Rules()
	got := slices.SortedFunc(maps.Values(w.rules), func(a, b *RealisedRule) int { return a.Key.compare(b.Key) })
	if !slices.EqualFunc(got, want, sameUpToNumbers) {
		t.Fatalf("step %d: the changes add up to\n%v\nnew Policies have\n%v", step, keysOf(got), keysOf(want))
	}
	if !slices.Equal(rankingOf(got), rankingOf(want)) {
		t.Fatalf("step %d: the order of priorities is\n%v\nnew Policies have\n%v", step, rankingOf(got), rankingOf(want))
	}
	if !reflect.DeepEqual(got, append([]*RealisedRule(nil), w.policies.Rules()...)) {
		t.Fatalf("step %d: the changes do not add up to the rules of the Policies", step)
	}
	if have := w.policies.Isolations(); !slices.EqualFunc(have, fresh.Isolations(), sameIsolation) || len(have) != len(w.isolated) {
		t.Fatalf("step %d: isolated are\n%v\nnew Policies have\n%v", step, have, fresh.Isolations())
	}
	seen := map[uint32]RuleKey{}
	for _, r := range got {
		if other, taken := seen[r.Rule.ID]; taken {
			t.Fatalf("step %d: %v and %v are both rule %d", step, r.Key, other, r.Rule.ID)
		}
		seen[r.Rule.ID] = r.Key
	}
}

func sameIsolation(a, b Isolation) bool {
	return a.Pod == b.Pod && a.Direction == b.Direction && a.equal(b)
}

func sameUpToNumbers(a, b *RealisedRule) bool {
	ra, rb := a.Rule, b.Rule
	ra.ID, rb.ID, ra.Priority, rb.Priority = 0, 0, 0, 0
	same := slices.EqualFunc(a.from(), b.from(), sameAddress) && slices.EqualFunc(a.to(), b.to(), sameAddress)
	ra.From, rb.From, ra.To, rb.To = nil, nil, nil, nil
	return a.Key == b.Key && same && reflect.DeepEqual(ra, rb)
}

func keysOf(rules []*RealisedRule) (text []string) {
	for _, r := range rules {
		text = append(text, fmt.Sprintf("\n%v %v -> %v", r.Key, addressTexts(r.from()), addressTexts(r.to())))
	}
	return text
}

// rankingOf returns the Antrea-native rules of each table by priority, ties by key.
func rankingOf(rules []*RealisedRule) (text []string) {
	rules = slices.DeleteFunc(slices.Clone(rules), func(r *RealisedRule) bool { return r.Rule.Kind == tables.K8sPolicy })
	slices.SortStableFunc(rules, func(a, b *RealisedRule) int {
		return cmp.Or(cmp.Compare(a.Rule.Kind, b.Rule.Kind), cmp.Compare(a.Rule.Direction, b.Rule.Direction),
			cmp.Compare(b.Rule.Priority, a.Rule.Priority), a.Key.compare(b.Key))
	})
	for i, r := range rules {
		tie := i > 0 && rules[i-1].Rule.Priority == r.Rule.Priority && rules[i-1].Rule.Kind == r.Rule.Kind
		text = append(text, fmt.Sprint(r.Key, tie))
	}
	return text
}

// crowd puts n Pods with app=crowd on other Nodes.
func (w *world) crowd(n int) {
	for i := range n {
		w.put(pod("lab", fmt.Sprint("crowd", i), crowdIP(i), labels("app", "crowd")))
	}
}

func crowdIP(i int) string { return netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}).String() }

// TestOnePodInTenThousand: if a Pod of a large group comes, moves or goes, only its own
// addresses change, once for all rules.
func TestOnePodInTenThousand(t *testing.T) {
	w := shop()
	w.crowd(10000)
	peers := []cluster.PolicyPeer{{Pods: selector("app", "crowd")}}
	for i := range 5 {
		w.put(cnp(fmt.Sprint("p", i), "", float64(1+i), []cluster.PolicyRule{antreaRule(cluster.ActionAllow, peers, tcp(80))}, []cluster.PolicyRule{antreaRule(cluster.ActionDrop, peers)}))
	}
	w.update(t)
	if len(w.rules) != 10 {
		t.Fatalf("%d rules, want 10", len(w.rules))
	}
	for _, c := range []struct {
		name           string
		change         func()
		added, removed []string
	}{
		{"comes", func() { w.put(pod("lab", "late", "10.2.0.1", labels("app", "crowd"))) }, []string{"10.2.0.1/32"}, []string{}},
		{"moves", func() { w.put(pod("lab", "late", "10.2.0.2", labels("app", "crowd"))) }, []string{"10.2.0.2/32"}, []string{"10.2.0.1/32"}},
		{"is another", func() { w.put(pod("lab", "late", "10.2.0.2", labels("app", "other"))) }, []string{}, []string{"10.2.0.2/32"}},
		{"claims an address", func() { w.put(pod("lab", "late", crowdIP(7), labels("app", "crowd"))) }, []string{}, []string{}},
		{"gives it back", func() { w.remove(cluster.Key{Kind: cluster.KindPod, Namespace: "lab", Name: "late"}) }, []string{}, []string{}},
		{"one of the crowd goes", func() { w.remove(cluster.Key{Kind: cluster.KindPod, Namespace: "lab", Name: "crowd8"}) }, []string{}, []string{crowdIP(8) + "/32"}},
	} {
		c.change()
		change := w.update(t)
		if len(change.Added)+len(change.Removed)+len(change.Isolated)+len(change.Released) != 0 {
			t.Fatalf("%s: whole rules changed", c.name)
		}
		var d AddressDelta
		for _, s := range change.Sets {
			d = s.AddressDelta
		}
		if len(change.Changed) > 0 || len(change.Sets) > 1 {
			t.Errorf("%s: %d rules and %d sets changed, want no rule and one set", c.name, len(change.Changed), len(change.Sets))
		}
		if !slices.Equal(addressTexts(d.Added), c.added) || !slices.Equal(addressTexts(d.Removed), c.removed) {
			t.Errorf("%s: it gains %v and loses %v", c.name, addressTexts(d.Added), addressTexts(d.Removed))
		}
	}
}

// TestRulesShareAddresses: rules that name the same Pods have the same set.
func TestRulesShareAddresses(t *testing.T) {
	w := shop()
	w.crowd(100)
	peers := []cluster.PolicyPeer{{Pods: selector("app", "crowd")}}
	w.put(cnp("a", "", 1, []cluster.PolicyRule{antreaRule(cluster.ActionAllow, peers), antreaRule(cluster.ActionDrop, peers, tcp(1))}, nil),
		cnp("b", "", 2, []cluster.PolicyRule{antreaRule(cluster.ActionAllow, peers)}, nil))
	w.update(t)
	first := map[*AddressSet]int{}
	for _, r := range w.rules {
		first[r.Peers]++
	}
	if len(w.rules) != 3 || len(first) != 1 {
		t.Errorf("%d rules have %d sets of addresses, want 3 with one", len(w.rules), len(first))
	}
}

// TestIDsStay: a rule keeps its conjunction id if its policy, addresses or priority change.
func TestIDsStay(t *testing.T) {
	w := shop()
	k := RuleKey{cluster.Key{Kind: cluster.KindClusterNetworkPolicy, Name: "a"}, tables.Ingress, 0, ""}
	w.put(cnp("a", "", 5, []cluster.PolicyRule{{Action: cluster.ActionDrop}}, nil))
	w.update(t)
	id, priority := w.rules[k].Rule.ID, w.rules[k].Rule.Priority
	w.put(cnp("a", "", 5, []cluster.PolicyRule{{Action: cluster.ActionAllow}}, nil), cnp("b", "", 4, []cluster.PolicyRule{{Action: cluster.ActionDrop}}, nil))
	w.update(t)
	w.put(cnp("a", "emergency", 5, []cluster.PolicyRule{{Action: cluster.ActionAllow}}, nil))
	change := w.update(t)
	if r := w.rules[k].Rule; r.ID != id || r.Priority == priority {
		t.Errorf("rule %d has priority %d, want rule %d with a priority other than %d", r.ID, r.Priority, id, priority)
	}
	if len(change.Removed) != 1 || len(change.Added) != 1 || change.Removed[0].Rule.ID != id {
		t.Errorf("the move is published as %d removed and %d added rules, want one of each", len(change.Removed), len(change.Added))
	}
}

// TestRoomIsMade: a policy between two adjacent ones moves one of them in the same change. The
// moved rule keeps its id.
func TestRoomIsMade(t *testing.T) {
	w := shop()
	drop := []cluster.PolicyRule{{Action: cluster.ActionDrop}}
	w.put(cnp("a", "", 5, drop, nil), cnp("c", "", 5.01, drop, nil))
	w.update(t)
	w.put(cnp("b", "", 5.005, drop, nil))
	change := w.update(t)
	if len(change.Removed) != 1 || len(change.Added) != 2 {
		t.Fatalf("%d rules are removed and %d added, want 1 and 2", len(change.Removed), len(change.Added))
	}
	moved := change.Removed[0]
	if now := w.rules[moved.Key]; now.Rule.ID != moved.Rule.ID || now.Rule.Priority == moved.Rule.Priority {
		t.Errorf("rule %d with priority %d is now rule %d with priority %d", moved.Rule.ID, moved.Rule.Priority, now.Rule.ID, now.Rule.Priority)
	}
	order := []uint16{}
	for _, name := range []string{"a", "b", "c"} {
		order = append(order, w.rules[RuleKey{cluster.Key{Kind: cluster.KindClusterNetworkPolicy, Name: name}, tables.Ingress, 0, ""}].Rule.Priority)
	}
	if order[0] <= order[1] || order[1] <= order[2] {
		t.Errorf("priorities of a, b and c are %v, want them falling", order)
	}
}

// TestRefusedForRoom: a policy that found no priority gets one when others have gone, without
// an edit of its own.
func TestRefusedForRoom(t *testing.T) {
	for tier, zone := range map[string]numbers.Zone{"": numbers.AntreaZone, "baseline": numbers.BaselineZone} {
		w := shop()
		full := slices.Repeat([]cluster.PolicyRule{{Action: cluster.ActionDrop}}, zone.Size())
		w.put(cnp("first", tier, 1, full, nil))
		w.update(t)
		w.put(cnp("second", tier, 2, full[:1], nil))
		w.update(t)
		second := cluster.Key{Kind: cluster.KindClusterNetworkPolicy, Name: "second"}
		if w.policies.Refused()[second] == nil || len(w.rules) != len(full) {
			t.Fatalf("tier %q: refused are %v of %d rules, want the second policy of %d", tier, w.policies.Refused(), len(w.rules), len(full))
		}
		w.remove(cluster.Key{Kind: cluster.KindClusterNetworkPolicy, Name: "first"})
		w.update(t)
		if len(w.policies.Refused()) != 0 || len(w.rules) != 1 {
			t.Errorf("tier %q: with room, refused are %v and there are %d rules, want none and 1", tier, w.policies.Refused(), len(w.rules))
		}
	}
}

// BenchmarkPolicies loads 10,000 Pods and 10,000 rules, then changes one Pod that every rule
// names. In BenchmarkSelectors every rule names a Pod of its own.
func BenchmarkPolicies(b *testing.B) {
	w := shop()
	w.crowd(10000)
	for i := range 1000 {
		peers := []cluster.PolicyPeer{{Pods: selector("app", "crowd")}, {IPBlock: block(fmt.Sprintf("198.18.%d.0/24", i%250))}}
		rules := slices.Repeat([]cluster.PolicyRule{antreaRule(cluster.ActionAllow, peers[i%2:], tcp(uint16(i)))}, 10)
		w.put(cnp(fmt.Sprint("p", i), "", float64(i)/7+1, rules, nil))
	}
	w.benchmark(b, pod("lab", "late", "10.2.0.1", labels("app", "crowd")))
}

func BenchmarkSelectors(b *testing.B) {
	w := shop()
	for i := range 10000 {
		w.put(pod("lab", fmt.Sprint("crowd", i), crowdIP(i), labels("app", fmt.Sprint("app", i))))
	}
	for i := range 1000 {
		var rules []cluster.PolicyRule
		for j := range 10 {
			rules = append(rules, antreaRule(cluster.ActionAllow, []cluster.PolicyPeer{{Pods: selector("app", fmt.Sprint("app", 10*i+j))}}, tcp(80)))
		}
		w.put(cnp(fmt.Sprint("p", i), "", float64(i)/7+1, rules, nil))
	}
	w.benchmark(b, pod("lab", "late", "10.2.0.1", labels("app", "app77")))
}

// benchmark loads the world, then adds and removes a Pod.
func (w *world) benchmark(b *testing.B, late *cluster.Pod) {
	b.Run("load", func(b *testing.B) {
		for b.Loop() {
			if n := len(w.compiler().Update(w.input()).Added); n != 10000 {
				b.Fatalf("%d rules, want 10000", n)
			}
		}
	})
	b.Run("one pod", func(b *testing.B) {
		p, without := w.compiler(), w.input()
		p.Update(without)
		w.put(late)
		with := w.input()
		for b.Loop() {
			p.Update(with)
			p.Update(without)
		}
	})
}
