package policy

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/tables"
)

// TestSpans: after any series of changes, each policy has the Nodes that a search of all Pods
// finds: those with a Pod that one of its rules applies to.
func TestSpans(t *testing.T) {
	names := []string{"here", "there", "gone", ""}
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 3))
		w := shop()
		w.put(&cluster.Node{Meta: cluster.Meta{Key: cluster.Key{Kind: cluster.KindNode, Name: "here"}}})
		w.update(t)
		s := &Spans{features: w.policies.config.Features}
		s.clear()
		old, most := cluster.EmptyCluster(), 0
		for step := range 200 {
			for range 1 + rng.IntN(3) {
				w.mutate(rng)
			}
			for k, p := range w.Pods {
				if rng.IntN(6) == 0 {
					moved := *p
					moved.NodeName = pick(rng, names)
					w.Pods[k] = &moved
				}
			}
			c := w.snapshot()
			keys := cluster.AppendChanged(nil, old.Pods, c.Pods)
			if rng.IntN(10) == 0 {
				keys = nil
			}
			s.Update(c, keys)
			old = c
			for k, ap := range c.AntreaPolicies {
				policy, nodes, err := s.Of(k)
				want, refused := requestedNodes(c, s.features, ap)
				if policy != ap || !slices.Equal(nodes, want) || (err != nil) != refused {
					t.Fatalf("seed %d, step %d: %s is on %v (%v), want %v", seed, step, k, nodes, err, want)
				}
				most = max(most, len(nodes))
			}
			if sets := len(s.pods.sets); len(c.AntreaPolicies) == 0 && sets > 0 || len(s.nodes) > sets {
				t.Fatalf("seed %d, step %d: %d sets for %d policies, %d lists of Nodes", seed, step, sets, len(c.AntreaPolicies), len(s.nodes))
			}
		}
		if most < 2 {
			t.Errorf("seed %d: no policy was on two Nodes", seed)
		}
	}
}

// requestedNodes finds the Nodes of a policy's Pods by a search of all Pods.
func requestedNodes(c *cluster.Cluster, f tables.Features, ap *cluster.AntreaPolicy) (nodes []string, refused bool) {
	plan, err := planAntreaPolicy(c, f, ap)
	if err != nil {
		return nil, true
	}
	all := map[string]bool{}
	for _, spec := range plan.specs {
		for _, choice := range spec.applied {
			for _, p := range c.Pods {
				if c.Node(p.NodeName) != nil && !p.HostNetwork && !p.Terminated() && choice.matches(c, p) {
					all[p.NodeName] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(all)), false
}

// TestServiceSpan: a policy that applies to a Service has all Nodes.
func TestServiceSpan(t *testing.T) {
	w := shop()
	ap := cnp("service", "", 5, []cluster.PolicyRule{{Action: cluster.ActionDrop}}, nil)
	ap.AppliedTo = []cluster.AppliedTo{{Service: &cluster.Name{Namespace: "shop", Name: "web"}}}
	w.put(ap)
	s := &Spans{features: w.policies.config.Features}
	s.clear()
	s.Update(w.snapshot(), nil)
	if _, nodes, err := s.Of(ap.Key); fmt.Sprint(nodes) != "[there]" || err != nil {
		t.Errorf("Nodes %v, %v", nodes, err)
	}
}
