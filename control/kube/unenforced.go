package kube

import (
	"context"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kinds that antrail does not enforce, and that a cluster may still have. The author of such a
// policy must learn that it has no effect. So these kinds are watched if the API server has them,
// and each object is refused by its kind (package manifest). The refusal is in the log, in an
// Event and in the counts of get watches.
//
// Nothing waits for these watches. If the agent may not read these kinds, or the API server does
// not list them, the agent works without them.

// unenforcedKinds are these kinds. Policies of other networks, such as Cilium, are not among them:
// the agent would need the right to read each of their groups.
var unenforcedKinds = []struct{ group, name, plural string }{
	{"policy.networking.k8s.io", "AdminNetworkPolicy", "adminnetworkpolicies"},
	{"policy.networking.k8s.io", "BaselineAdminNetworkPolicy", "baselineadminnetworkpolicies"},
	{"policy.networking.k8s.io", "ClusterNetworkPolicy", "clusternetworkpolicies"},
}

// runUnenforced starts watches of these kinds when they appear, until ctx ends.
func (s *Source) runUnenforced(ctx context.Context, watches *sync.WaitGroup) {
	wait := min(firstWait, s.longest)
	for {
		found, err := s.api.discoverUnenforced(ctx)
		if ctx.Err() != nil {
			return
		}
		for _, w := range s.watchUnenforced(found) {
			watches.Go(func() { w.runWatch(ctx) })
		}
		if wait = min(2*wait, s.pace.absent); err == nil {
			wait = s.pace.absent
		}
		pause(ctx, nil, wait)
	}
}

// discoverUnenforced returns those of these kinds that the API server has. Any served version will
// do, because only the name of an object is read.
func (c *connections) discoverUnenforced(ctx context.Context) (all []resource, err error) {
	groups := map[string]served{}
	for _, k := range unenforcedKinds {
		has, known := groups[k.group]
		if !known {
			if has, err = c.discover(ctx, k.group); err != nil {
				return all, err
			}
			groups[k.group] = has
		}
		if version := has.anyVersion(k.plural); version != "" {
			gvk := schema.GroupVersionKind{Group: k.group, Version: version, Kind: k.name}
			all = append(all, resource{gvk: gvk, plural: k.plural, unenforced: true})
		}
	}
	return all, nil
}

// anyVersion is a version that a resource is served in, always the same; "" for none.
// anyVersion is the last version by name that serves a resource; "" if none does.
func (has served) anyVersion(plural string) string {
	var all []string
	for name := range has {
		if version, found := strings.CutSuffix(name, "/"+plural); found {
			all = append(all, version)
		}
	}
	if all == nil {
		return ""
	}
	return slices.Max(all)
}

// watchUnenforced makes watches for the resources without one, and logs them.
func (s *Source) watchUnenforced(found []resource) (begun []*watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range found {
		if slices.ContainsFunc(s.watches, func(w *watch) bool { return w.name() == r.name() }) {
			continue
		}
		s.config.Log.Info("kubernetes: the cluster has a kind that antrail does not enforce; its objects will be refused", "resource", r.name())
		w := newWatch(s, r)
		s.watches, begun = append(s.watches, w), append(begun, w)
	}
	return begun
}
