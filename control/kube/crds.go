package kube

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Antrea's kinds are CustomResourceDefinitions, which a cluster may lack or get later. The agent
// looks for missing kinds at growing intervals. If a kind goes, its watch stays: the objects
// were deleted with it, and it may return.

// runDiscovery starts a watch for each of Antrea's kinds when it appears. It runs until all
// kinds are there or ctx ends.
func (s *Source) runDiscovery(ctx context.Context, watches *sync.WaitGroup) {
	wait := min(firstWait, s.longest)
	for {
		has, err := s.api.discover(ctx, antreaGroup)
		if ctx.Err() != nil {
			return
		}
		for _, w := range s.found(has, err) {
			watches.Go(func() { w.runWatch(ctx) })
		}
		if err == nil && s.complete() {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		wait = min(2*wait, s.longest)
	}
}

// found records the result of a discovery, and returns the watches to start.
func (s *Source) found(has served, err error) (begun []*watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.discovery
	if s.discovery = err; err != nil {
		if was == nil {
			s.config.Log.Warn("kubernetes: cannot tell which of Antrea's kinds there are; trying again", "error", err)
		}
		return nil
	}
	there, absent := has.choose()
	for _, r := range there {
		if s.watched(r) {
			continue
		}
		w := newWatch(s, r)
		s.watches, begun = append(s.watches, w), append(begun, w)
	}
	if first := !s.discovered; first && len(absent) > 0 {
		s.config.Log.Info("kubernetes: not all of Antrea's kinds are there; waiting for the others", "there", len(there), "absent", len(absent))
	}
	s.discovered, s.absent = true, absent
	s.ready(time.Now())
	return begun
}

// watched reports whether a kind of Antrea's has a watch, in any version.
func (s *Source) watched(r resource) bool {
	return slices.ContainsFunc(s.watches, func(w *watch) bool { return w.gvk.GroupKind() == r.gvk.GroupKind() })
}

// complete reports whether all of Antrea's kinds are there.
func (s *Source) complete() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.absent) == 0
}
