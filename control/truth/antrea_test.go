package truth

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/internal/testsize"
	"github.com/mattfenwick/cyclonus/pkg/matcher"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

// Antrea-native policies, which cyclonus does not know. The oracle reads random policies as their documentation says, from the
// first tier to the last, rule by rule. If no rule decides, or one says Pass, cyclonus decides for the NetworkPolicies, and then
// the baseline tier.

// tiers are the names of tiers and their priorities.
var tiers = map[string]int{"emergency": 50, "securityops": 100, "platform": 200, "application": 250, "baseline": 253}

// choice chooses Pods by the label pod and by the label ns of their namespace; empty: any.
type choice struct{ pod, ns string }

func (c choice) yaml() string {
	text := ""
	if c.pod != "" || c.ns == "" {
		text += "podSelector: " + labelYAML("pod", c.pod) + ", "
	}
	if c.ns != "" {
		text += "namespaceSelector: " + labelYAML("ns", c.ns)
	}
	return "{" + strings.TrimSuffix(text, ", ") + "}"
}

func labelYAML(name, value string) string {
	if value == "" {
		return "{}"
	}
	return fmt.Sprintf("{matchLabels: {%s: %q}}", name, value)
}

func (c choice) takes(e *endpoint) bool {
	return e.name != "" && (c.pod == "" || c.pod == e.labels["pod"]) && (c.ns == "" || c.ns == e.namespace)
}

// nativeRule is a rule of a nativePolicy.
type nativeRule struct {
	action string
	pods   *choice         // peers; nil with no block: any
	block  netip.Prefix    // peers
	proto  corev1.Protocol // empty: any
	ports  [2]int32        // first and last; 0: any
}

func (r *nativeRule) yaml(peers string) string {
	text := "{action: " + r.action
	switch {
	case r.pods != nil:
		text += ", " + peers + ": [" + r.pods.yaml() + "]"
	case r.block.IsValid():
		text += ", " + peers + ": [{ipBlock: {cidr: \"" + r.block.String() + "\"}}]"
	}
	if r.proto != "" {
		text += ", ports: [{protocol: " + string(r.proto)
		if r.ports[0] != 0 {
			text += fmt.Sprintf(", port: %d", r.ports[0])
		}
		if r.ports[1] > r.ports[0] {
			text += fmt.Sprintf(", endPort: %d", r.ports[1])
		}
		text += "}]"
	}
	return text + "}"
}

func (r *nativeRule) matches(peer *endpoint, port int32, proto corev1.Protocol) bool {
	switch {
	case r.pods != nil && !r.pods.takes(peer), r.block.IsValid() && !r.block.Contains(peer.ip):
		return false
	case r.proto == "":
		return true
	}
	return r.proto == proto && (r.ports[0] == 0 || port >= r.ports[0] && port <= max(r.ports[0], r.ports[1]))
}

// nativePolicy is a ClusterNetworkPolicy.
type nativePolicy struct {
	name     string
	tier     string
	priority float64
	applied  choice
	ingress  []nativeRule
	egress   []nativeRule
}

func (p *nativePolicy) yaml() string {
	text := fmt.Sprintf("apiVersion: crd.antrea.io/v1beta1\nkind: ClusterNetworkPolicy\nmetadata: {name: %s}\nspec:\n  tier: %s\n  priority: %v\n  appliedTo: [%s]\n",
		p.name, p.tier, p.priority, p.applied.yaml())
	for _, side := range []struct {
		field, peers string
		rules        []nativeRule
	}{{"ingress", "from", p.ingress}, {"egress", "to", p.egress}} {
		if len(side.rules) > 0 {
			text += "  " + side.field + ":\n"
		}
		for i := range side.rules {
			text += "    - " + side.rules[i].yaml(side.peers) + "\n"
		}
	}
	return text
}

// side is one end of a new connection, seen from that end.
type side struct {
	ingress    bool
	self, peer *endpoint
	port       int32
	proto      corev1.Protocol
}

// decide is the action of the first matching rule; empty: none matches.
func (s side) decide(policies []nativePolicy) string {
	for i := range policies {
		p := &policies[i]
		rules := p.egress
		if s.ingress {
			rules = p.ingress
		}
		if !p.applied.takes(s.self) {
			continue
		}
		for j := range rules {
			if rules[j].matches(s.peer, s.port, s.proto) {
				return rules[j].action
			}
		}
	}
	return ""
}

// passes reports whether one side of a connection lets it pass; k8s is the verdict of NetworkPolicies. A side on another Node
// always does.
func (s side) passes(policies []nativePolicy, k8s *matcher.DirectionResult) bool {
	if s.self.port == 0 {
		return true
	}
	first := slices.IndexFunc(policies, func(p nativePolicy) bool { return p.tier == "baseline" })
	if first < 0 {
		first = len(policies)
	}
	if action := s.decide(policies[:first]); action != "" && action != "Pass" {
		return action == "Allow"
	}
	if len(k8s.AllowingTargets)+len(k8s.DenyingTargets) > 0 {
		return k8s.IsAllowed()
	}
	action := s.decide(policies[first:])
	return action == "" || action == "Allow"
}

func pick[T any](rng *rand.Rand, from ...T) T { return from[rng.IntN(len(from))] }

func randomRules(rng *rand.Rand, baseline bool) (rules []nativeRule) {
	for range rng.IntN(4) {
		r := nativeRule{action: pick(rng, "Allow", "Drop", "Reject", "Pass")}
		if baseline && r.action == "Pass" {
			r.action = "Drop"
		}
		switch rng.IntN(4) {
		case 0:
			r.pods = &choice{pick(rng, "", "a", "b"), pick(rng, "", "x", "z")}
		case 1:
			r.block = netip.MustParsePrefix(pick(rng, "10.10.0.0/16", "10.10.1.0/24", "198.51.100.0/24", "0.0.0.0/0", "fd00:10:10::/48", "fd00:10:10:1::/64", "::/0"))
		}
		if rng.IntN(3) > 0 {
			r.proto = pick(rng, protocols...)
			r.ports = pick(rng, [2]int32{}, [2]int32{80}, [2]int32{79, 80})
		}
		rules = append(rules, r)
	}
	return rules
}

// randomPolicies returns policies of different rank, the first to decide first.
func randomPolicies(rng *rand.Rand) (all []nativePolicy) {
	for i := range 1 + rng.IntN(6) {
		p := nativePolicy{
			name: fmt.Sprint("native", i), tier: pick(rng, "emergency", "securityops", "platform", "application", "baseline"),
			priority: float64(1+rng.IntN(30)) + float64(i)/16, // all different
			applied:  choice{pick(rng, "", "a", "b"), pick(rng, "", "x", "y")},
		}
		p.ingress, p.egress = randomRules(rng, p.tier == "baseline"), randomRules(rng, p.tier == "baseline")
		if len(p.ingress)+len(p.egress) > 0 {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b nativePolicy) int {
		return cmp.Or(cmp.Compare(tiers[a.tier], tiers[b.tier]), cmp.Compare(a.priority, b.priority))
	})
	return all
}

// TestAntreaPolicies installs random Antrea-native policies beside generated NetworkPolicies, one set after the other on one
// switch.
func TestAntreaPolicies(t *testing.T) {
	b, pool := newBench(t), firstPolicies(newCluster(t, 4))
	for seed := range testsize.Rounds(uint64(150)) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			b.t = t
			rng := rand.New(rand.NewPCG(seed, 2))
			c := newCluster(t, families[seed%2])
			policies := randomPolicies(rng)
			for _, p := range policies {
				c.more = append(c.more, p.yaml())
			}
			for i := range rng.IntN(3) {
				p := pool[rng.IntN(len(pool))].DeepCopy()
				p.Name = fmt.Sprint("p", i)
				c.putPolicy(p)
			}
			b.bring(c)
			_, wrong := b.compare(c, func(pk packetCase, k8s *matcher.AllowedResult) bool {
				return side{false, pk.from, pk.to, pk.port, pk.proto}.passes(policies, k8s.Egress) &&
					side{true, pk.to, pk.from, pk.port, pk.proto}.passes(policies, k8s.Ingress)
			})
			if len(wrong) > 0 {
				t.Errorf("%s\n%s", c.manifests(t), strings.Join(wrong, "\n"))
			}
		})
	}
}

// firstPolicies are the policies of the first generated cases.
func firstPolicies(c *testCluster) (pool []*networkingv1.NetworkPolicy) {
	for _, tc := range generated(c) {
		for _, a := range tc.Steps[0].Actions {
			if a.CreatePolicy != nil {
				pool = append(pool, a.CreatePolicy.Policy)
			}
		}
	}
	return pool
}
