package kube

import (
	"context"
	"time"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/manifest"
	"github.com/antrail/antrail/control/store"
)

// Changes wait until runApply is free. While it applies one change, the next ones gather. If an
// object has several events, only the last counts. So a burst costs a few steps, and a single
// change does not wait. The first step waits until every resource was read.

// pending has the changes that the store lacks.
type pending struct {
	objects map[cluster.Key]cluster.Object // nil: the object is gone
	since   time.Time                      // when the first of them came
}

func newPending() pending { return pending{objects: map[cluster.Key]cluster.Object{}} }

func (p *pending) put(k cluster.Key, o cluster.Object) { p.objects[k] = o }
func (p *pending) remove(k cluster.Key)                { p.objects[k] = nil }

// change empties pending and returns it as one Change.
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

// ready wakes runApply after something came at a time. The caller holds s.mu.
func (s *Source) ready(since time.Time) {
	if len(s.pending.objects) > 0 && s.pending.since.IsZero() {
		s.pending.since = since
	}
	select {
	case s.wake <- struct{}{}:
	default: // a wake-up is pending already
	}
}

// runApply applies the pending changes until ctx ends.
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

// takeBatch takes the changes to apply now, if any. The first batch waits until every resource
// was read. It has no Since, because its waiting time says nothing about one change.
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

// report logs new problems and makes Events of them. It also sets the refused edits of the
// store.
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
