package policy

import (
	"maps"
	"slices"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/tables"
)

// Spans are the Nodes that Antrea-native policies are to be realised on: those with
// Pods that a policy applies to, or all of them for one that applies to a Service. It is
// what a policy's status counts Nodes against, and follows from the cluster's objects
// alone. Only the agent that sums up has one; it is used from one goroutine.
type Spans struct {
	features tables.Features
	cluster  *cluster.Cluster
	pods     *podSets // of all Nodes
	plans    map[cluster.Key]*spanPlan
	nodes    map[*podSet][]string // of its Pods; what is missing is found anew
}

// spanPlan is what a policy applies to.
type spanPlan struct {
	specs  []*policySpec
	sets   []*podSet
	err    error // why it is refused
	policy *cluster.AntreaPolicy
}

// NewSpans makes Spans without policies, for a pipeline with some features.
func NewSpans(f tables.Features) *Spans {
	s := &Spans{features: f}
	s.clear()
	return s
}

func (s *Spans) clear() {
	s.cluster, s.pods = cluster.EmptyCluster(), newPodSets(nil)
	s.plans, s.nodes = map[cluster.Key]*spanPlan{}, map[*podSet][]string{}
}

// Update takes the next snapshot; keys are the objects that differ from the last one,
// nil: any may. Without policies nothing is kept.
func (s *Spans) Update(c *cluster.Cluster, keys []cluster.Key) {
	if len(c.AntreaPolicies) == 0 {
		s.clear()
		return
	}
	old := s.cluster
	if keys == nil || len(old.AntreaPolicies) == 0 {
		keys = cluster.AppendChanged(nil, old.Pods, c.Pods)
	}
	s.cluster, s.pods.cluster = c, c
	for _, k := range keys {
		if k.Kind == cluster.KindPod {
			s.move(k)
		}
	}
	for _, ns := range changedNamespaces(old, c) {
		s.forget(s.pods.renamespace(ns))
	}
	s.replan(old)
}

// move brings one Pod up to date: one counts that is on a Node and that policies speak
// of.
func (s *Spans) move(k cluster.Key) {
	pod := s.cluster.Pods[k]
	if pod == nil || pod.NodeName == "" || pod.Terminated() || pod.HostNetwork {
		s.forget(s.pods.remove(k))
		return
	}
	s.forget(s.pods.put(k, member{pod: pod}))
}

func (s *Spans) forget(sets []*podSet) {
	for _, set := range sets {
		delete(s.nodes, set)
	}
}

// replan looks at the policies that changed, or at all when what they borrow did.
func (s *Spans) replan(old *cluster.Cluster) {
	c := s.cluster
	lenders := !equalMaps(old.Groups, c.Groups) || !equalMaps(old.Services, c.Services) || !equalMaps(old.Tiers, c.Tiers)
	for k, plan := range s.plans {
		if c.AntreaPolicies[k] == nil {
			s.release(plan)
			delete(s.plans, k)
		}
	}
	for k, ap := range c.AntreaPolicies {
		was := s.plans[k]
		if was != nil && was.policy == ap && !lenders {
			continue
		}
		s.plans[k] = s.plan(ap)
		if was != nil {
			s.release(was)
		}
	}
}

func (s *Spans) plan(ap *cluster.AntreaPolicy) *spanPlan {
	plan, err := planAntreaPolicy(s.cluster, s.features, ap)
	p := &spanPlan{err: err, policy: ap}
	if err != nil {
		return p
	}
	p.specs = plan.specs
	for _, spec := range p.specs {
		for _, c := range spec.applied {
			set := s.pods.use(c, spec)
			p.sets = append(p.sets, set)
			spec.local = append(spec.local, set)
		}
	}
	return p
}

func (s *Spans) release(p *spanPlan) {
	for _, spec := range p.specs {
		for _, set := range spec.local {
			s.pods.release(set, spec)
			if len(set.users) == 0 {
				delete(s.nodes, set)
			}
		}
	}
}

// Of is the Nodes of a policy, in order, and the state of the policy that they follow
// from; nil when there is no such policy. The error says why it is refused.
func (s *Spans) Of(k cluster.Key) (policy *cluster.AntreaPolicy, nodes []string, err error) {
	p := s.plans[k]
	if p == nil {
		return nil, nil, nil
	}
	all := map[string]bool{}
	for _, spec := range p.specs {
		if len(spec.services) > 0 {
			for k := range s.cluster.Nodes {
				all[k.Name] = true
			}
		}
	}
	for _, set := range p.sets {
		for _, n := range s.nodesOf(set) {
			if s.cluster.Node(n) != nil { // else it is gone, and its Pods will be
				all[n] = true
			}
		}
	}
	return p.policy, slices.Sorted(maps.Keys(all)), p.err
}

func (s *Spans) nodesOf(set *podSet) []string {
	if all, known := s.nodes[set]; known {
		return all
	}
	nodes := map[string]bool{}
	for _, m := range set.members {
		nodes[m.pod.NodeName] = true
	}
	s.nodes[set] = slices.Collect(maps.Keys(nodes))
	return s.nodes[set]
}
