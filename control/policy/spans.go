package policy

import (
	"maps"
	"slices"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/tables"
)

// Spans has the Nodes that must realise each Antrea-native policy. If the policy applies to a
// Service, these are all Nodes. Otherwise they are the Nodes of the Pods that it applies to. A
// policy's status counts these Nodes. They follow from the cluster's objects only. Only the agent
// that sums up statuses has a Spans. One goroutine uses it.
type Spans struct {
	features tables.Features
	cluster  *cluster.Cluster
	pods     *podSets // of all Nodes
	plans    map[cluster.Key]*spanPlan
	nodes    map[*podSet][]string // cache: the Nodes of a set's Pods
}

// spanPlan has what a policy applies to.
type spanPlan struct {
	specs  []*policySpec
	sets   []*podSet
	err    error // the reason for a refusal
	policy *cluster.AntreaPolicy
}

// NewSpans makes Spans without policies. The features are those of the pipeline.
func NewSpans(f tables.Features) *Spans {
	s := &Spans{features: f}
	s.clear()
	return s
}

func (s *Spans) clear() {
	s.cluster, s.pods = cluster.EmptyCluster(), newPodSets(nil)
	s.plans, s.nodes = map[cluster.Key]*spanPlan{}, map[*podSet][]string{}
}

// Update takes the next snapshot. keys are the objects that changed since the last one; nil: all
// may have changed. Without policies it keeps nothing.
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
			s.movePod(k)
		}
	}
	for _, ns := range changedNamespaces(old, c) {
		s.forget(s.pods.renamespace(ns))
	}
	s.replan(old)
}

// movePod updates one Pod. A Pod counts if it has a Node and policies can apply to it.
func (s *Spans) movePod(k cluster.Key) {
	pod := s.cluster.Pods[k]
	if pod == nil || pod.NodeName == "" || pod.Terminated() || pod.HostNetwork {
		s.forget(s.pods.removePod(k))
		return
	}
	s.forget(s.pods.setPod(k, member{pod: pod}))
}

func (s *Spans) forget(sets []*podSet) {
	for _, set := range sets {
		delete(s.nodes, set)
	}
}

// replan plans the policies that changed, or all if a Group, Service or Tier changed.
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
			set := s.pods.acquireSet(c, spec)
			p.sets = append(p.sets, set)
			spec.local = append(spec.local, set)
		}
	}
	return p
}

func (s *Spans) release(p *spanPlan) {
	for _, spec := range p.specs {
		for _, set := range spec.local {
			s.pods.releaseSet(set, spec)
			if len(set.users) == 0 {
				delete(s.nodes, set)
			}
		}
	}
}

// Of returns the Nodes of a policy, sorted, and the state of the policy that they follow from.
// Both are nil if the policy does not exist. The error is the reason for a refusal.
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
			if s.cluster.Node(n) != nil { // without it, its Pods will go too
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
