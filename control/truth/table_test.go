package truth

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/mattfenwick/cyclonus/pkg/generator"
	"github.com/mattfenwick/cyclonus/pkg/matcher"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

// probed are the ports that are tried: those that containers serve and name,
// and one that none does.
var probed = []int32{80, 81, 79}

// generated are all test cases of cyclonus. The IP is that of a Pod whose
// neighbours some blocks leave out.
func generated(c *cluster) []*generator.TestCase {
	g := generator.NewTestCaseGenerator(true, c.pods["z/c"].ip.String(), []string{"x", "y", "z"}, nil, nil)
	return g.GenerateAllTestCases()
}

// TestGeneratedCases walks through every generated case on one switch, so that
// what one case leaves behind would be found by the next. In none of them does
// the switch differ from cyclonus.
func TestGeneratedCases(t *testing.T) {
	b, probes := newBench(t), 0
	cases := generated(newCluster(t))
	if len(cases) < 200 {
		t.Fatalf("%d cases, want 200 at least", len(cases))
	}
	for i, tc := range cases {
		t.Run(fmt.Sprintf("%03d %s", i, tc.Description), func(t *testing.T) {
			b.t = t
			c := newCluster(t)
			var wrong []string
			for _, step := range tc.Steps {
				for _, a := range step.Actions {
					if a.ReadNetworkPolicies == nil {
						c.act(t, a)
					}
				}
				b.bring(c)
				n, bad := b.compare(c)
				probes, wrong = probes+n, append(wrong, bad...)
			}
			if len(wrong) > 0 {
				t.Error(strings.Join(wrong, "\n"))
			}
		})
	}
	t.Logf("%d cases, %d probes", len(cases), probes)
}

// TestPoliciesTogether puts several policies of different cases in force at
// once.
func TestPoliciesTogether(t *testing.T) {
	b, pool := newBench(t), []*networkingv1.NetworkPolicy{}
	for _, tc := range generated(newCluster(t)) {
		for _, a := range tc.Steps[0].Actions {
			if a.CreatePolicy != nil {
				pool = append(pool, a.CreatePolicy.Policy)
			}
		}
	}
	for seed := range uint64(60) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			b.t = t
			rng := rand.New(rand.NewPCG(seed, 0))
			c := newCluster(t)
			for i := range 2 + rng.IntN(5) {
				p := pool[rng.IntN(len(pool))].DeepCopy()
				p.Name = fmt.Sprint("p", i)
				c.putPolicy(p)
			}
			b.bring(c)
			if _, wrong := b.compare(c); len(wrong) > 0 {
				t.Errorf("%s\n%s", c.manifests(t), strings.Join(wrong, "\n"))
			}
		})
	}
}

// compare probes all pairs and returns the number of probes and those that
// went otherwise than they should.
//
// A Pod and itself is no pair. Here cyclonus and the API differ: its matcher
// applies policies to such traffic too, while the documentation of
// NetworkPolicies says "a pod cannot block access to itself". The traffic does
// not leave the Pod's own loopback, so that no switch has a say in it.
func (b *bench) compare(c *cluster) (n int, wrong []string) {
	b.t.Helper()
	policies := slices.Collect(maps.Values(c.policies))
	oracle := matcher.BuildNetworkPolicies(false, policies)
	all := c.endpoints()
	for _, from := range all {
		for _, to := range all {
			if from == to || from.port == 0 && to.port == 0 {
				continue // never meets this Node's switch
			}
			for _, port := range probed {
				for _, proto := range protocols {
					n++
					want := c.allowed(oracle, from, to, port, proto)
					if got := b.probe(from, to, port, proto); got != want {
						wrong = append(wrong, fmt.Sprintf("%s to %s %s/%d: passes %t, want %t", from, to, proto, port, got, want))
					}
				}
			}
		}
	}
	return n, wrong
}

// allowed is the oracle's verdict as far as this Node has to enforce it: its
// own Pods' side of a connection.
func (c *cluster) allowed(oracle *matcher.Policy, from, to *endpoint, port int32, proto corev1.Protocol) bool {
	traffic := &matcher.Traffic{
		Source: c.peer(from), Destination: c.peer(to),
		ResolvedPort: int(port), ResolvedPortName: portName(port, proto), Protocol: proto,
	}
	if to.name == "" {
		traffic.ResolvedPortName = "" // nothing outside names its ports
	}
	result := oracle.IsTrafficAllowed(traffic)
	return (from.port == 0 || result.Egress.IsAllowed()) && (to.port == 0 || result.Ingress.IsAllowed())
}

func (c *cluster) peer(e *endpoint) *matcher.TrafficPeer {
	p := &matcher.TrafficPeer{IP: e.ip.String()}
	if e.name != "" {
		p.Internal = &matcher.InternalPeer{PodLabels: e.labels, NamespaceLabels: c.namespaces[e.namespace], Namespace: e.namespace}
	}
	return p
}
