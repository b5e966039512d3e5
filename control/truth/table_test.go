package truth

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/internal/testsize"
	"github.com/mattfenwick/cyclonus/pkg/generator"
	"github.com/mattfenwick/cyclonus/pkg/matcher"
	corev1 "k8s.io/api/core/v1"
)

// probed are the ports of the probes: those that containers serve and name, and one that no container serves.
var probed = []int32{80, 81, 79}

// generated are all test cases of cyclonus. The IP is that of a Pod; some blocks exclude its neighbours.
func generated(c *testCluster) []*generator.TestCase {
	g := generator.NewTestCaseGenerator(true, c.pods["z/c"].ip.String(), []string{"x", "y", "z"}, nil, nil)
	return g.GenerateAllTestCases()
}

// TestGeneratedCases runs every generated case on one switch, so that leftovers of one case affect the next. The switch and
// cyclonus agree in all of them.
func TestGeneratedCases(t *testing.T) {
	for _, f := range families {
		t.Run(fmt.Sprint("IPv", f), func(t *testing.T) { runGenerated(t, f) })
	}
}

var families = []family{4, 6}

func runGenerated(t *testing.T, f family) {
	b, probes := newBench(t), 0
	cases := generated(newCluster(t, f))
	if len(cases) < 200 {
		t.Fatalf("%d cases, want 200 at least", len(cases))
	}
	for i, tc := range testsize.Some(cases) {
		t.Run(fmt.Sprintf("%03d %s", i, tc.Description), func(t *testing.T) {
			b.t = t
			c := newCluster(t, f)
			for _, step := range tc.Steps {
				for _, a := range step.Actions {
					if a.ReadNetworkPolicies == nil {
						c.act(t, a)
					}
				}
				b.bring(c)
				n, wrong := b.compare(c, here)
				probes += n
				if len(wrong) > 0 {
					t.Error(strings.Join(wrong, "\n"))
				}
			}
		})
	}
	t.Logf("%d cases, %d probes", len(cases), probes)
}

// TestPoliciesTogether installs several policies of different cases at once.
func TestPoliciesTogether(t *testing.T) {
	b, pool := newBench(t), firstPolicies(newCluster(t, 4))
	for seed := range testsize.Rounds(uint64(60)) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			b.t = t
			rng := rand.New(rand.NewPCG(seed, 0))
			c := newCluster(t, families[seed%2])
			for i := range 2 + rng.IntN(5) {
				p := pool[rng.IntN(len(pool))].DeepCopy()
				p.Name = fmt.Sprint("p", i)
				c.putPolicy(p)
			}
			b.bring(c)
			if _, wrong := b.compare(c, here); len(wrong) > 0 {
				t.Errorf("%s\n%s", c.manifests(t), strings.Join(wrong, "\n"))
			}
		})
	}
}

// compare probes all pairs. It returns the number of probes and the wrong ones.
//
// A Pod does not probe itself, because there cyclonus and the API differ. The matcher applies policies to such traffic too, but
// the documentation of NetworkPolicies says "a pod cannot block access to itself". The traffic stays in the Pod's own loopback,
// so no switch sees it.
//
// expect computes the expected verdict from that of cyclonus.
func (b *bench) compare(c *testCluster, expect func(packetCase, *matcher.AllowedResult) bool) (n int, wrong []string) {
	b.t.Helper()
	oracle := matcher.BuildNetworkPolicies(false, slices.Collect(maps.Values(c.policies)))
	for _, pk := range c.packets() {
		n++
		want := expect(pk, oracle.IsTrafficAllowed(c.traffic(pk)))
		if got := b.probe(pk.from, pk.to, pk.port, pk.proto); got != want {
			wrong = append(wrong, fmt.Sprintf("%s to %s %s/%d: passes %t, want %t", pk.from, pk.to, pk.proto, pk.port, got, want))
		}
	}
	return n, wrong
}

// packetCase is a packet that opens a connection.
type packetCase struct {
	from, to *endpoint
	port     int32
	proto    corev1.Protocol
}

// packets returns all packets between two ends of which one is on this Node, because its switch sees no others.
func (c *testCluster) packets() (all []packetCase) {
	ends := c.endpoints()
	for _, from := range ends {
		for _, to := range ends {
			if from == to || from.port == 0 && to.port == 0 {
				continue
			}
			for _, port := range probed {
				for _, proto := range protocols {
					all = append(all, packetCase{from, to, port, proto})
				}
			}
		}
	}
	return all
}

// here is the part of the oracle's verdict that this Node must enforce: the side of its own Pods.
func here(pk packetCase, k8s *matcher.AllowedResult) bool {
	return (pk.from.port == 0 || k8s.Egress.IsAllowed()) && (pk.to.port == 0 || k8s.Ingress.IsAllowed())
}

// traffic is a packet in the form of cyclonus.
func (c *testCluster) traffic(pk packetCase) *matcher.Traffic {
	tr := &matcher.Traffic{Source: c.peer(pk.from), Destination: c.peer(pk.to), ResolvedPort: int(pk.port), Protocol: pk.proto}
	if pk.to.name != "" { // nothing outside names its ports
		tr.ResolvedPortName = portName(pk.port, pk.proto)
	}
	return tr
}

func (c *testCluster) peer(e *endpoint) *matcher.TrafficPeer {
	p := &matcher.TrafficPeer{IP: e.ip.String()}
	if e.name != "" {
		p.Internal = &matcher.InternalPeer{PodLabels: e.labels, NamespaceLabels: c.namespaces[e.namespace], Namespace: e.namespace}
	}
	return p
}
