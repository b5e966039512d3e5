package kube

import (
	"context"
	"time"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/manifest"
	"github.com/antrail/antrail/control/store"
)

// Changes wait until whoever applies them is free: while one is being applied,
// the next gather, of several events of one object only the last. So a burst
// costs a few steps, and a single change waits for nobody. The first step is
// taken only when every resource was read.

// pending are the changes that the store does not have yet.
type pending struct {
	objects map[cluster.Key]cluster.Object // nil: it is gone
	since   time.Time                      // when the first of them came
}

func newPending() pending { return pending{objects: map[cluster.Key]cluster.Object{}} }

func (p *pending) put(k cluster.Key, o cluster.Object) { p.objects[k] = o }
func (p *pending) remove(k cluster.Key)                { p.objects[k] = nil }

// change is all that is pending as one change.
func (p *pending) change() store.Change {
	c := store.Change{Source: SourceName, Since: p.since}
	for k, o := range p.objects {
		if o == nil {
			c.Delete = append(c.Delete, k)
		} else {
			c.Set = append(c.Set, o)
		}
	}
	*p = newPending()
	return c
}

// ready wakes who applies, after something came at a time. s.mu is held.
func (s *Source) ready(since time.Time) {
	if len(s.pending.objects) > 0 && s.pending.since.IsZero() {
		s.pending.since = since
	}
	select {
	case s.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// runApply gives the store what is pending until ctx ends.
func (s *Source) runApply(ctx context.Context) {
	first := true
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		}
		c, ok := s.takeBatch(first)
		if ok {
			s.store.Apply(c)
		}
		if ok && first {
			first = false
			close(s.synced)
		}
		if !first {
			s.report()
		}
	}
}

// takeBatch is what is to be applied now, if there is something. The first time, that
// is everything or nothing, and nobody is told since when it waited: that would
// say nothing about one change.
func (s *Source) takeBatch(first bool) (store.Change, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if first && s.missing() != nil || !first && len(s.pending.objects) == 0 {
		return store.Change{}, false
	}
	c := s.pending.change()
	if first {
		c.Since = time.Time{}
	}
	return c, true
}

// report logs problems that are new, and tells them on the objects; and it tells the
// store which edits are refused.
func (s *Source) report() {
	s.store.SetRefusedEdits(s.refusedEdits())
	now := map[string]bool{}
	var news []manifest.Problem
	for _, p := range s.Problems() {
		text := p.Error()
		now[text] = true
		if !s.told[text] {
			news = append(news, p)
			s.config.Log.Warn("kubernetes: an object is not in force", "problem", text)
		}
	}
	s.told = now
	s.contradictions(news)
}
