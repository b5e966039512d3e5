package trace

import (
	"cmp"
	"slices"
	"time"
)

// Joined is a packet's whole way as far as it is known: its walk on the Node where
// it was first seen, and behind it those with the same id.
type Joined []*Walk

// Joiner puts walks of several Nodes together. A walk whose packet went to another
// Node waits for what that one saw, but not for ever.
type Joiner struct {
	// Wait is how long a walk waits for its other halves.
	Wait time.Duration
	// Alone says that no other Node is asked.
	Alone   bool
	waiting map[string]*open
}

// open is a way that is not known to be whole.
type open struct {
	walks Joined
	since time.Time
}

// Add takes a walk, and returns those ways that are whole by it: one at most.
func (j *Joiner) Add(w *Walk, now time.Time) (whole []Joined) {
	if j.waiting == nil {
		j.waiting = map[string]*open{}
	}
	o := j.waiting[w.ID]
	if o == nil {
		o = &open{since: now}
		j.waiting[w.ID] = o
	}
	o.walks = append(o.walks, w)
	if !o.whole(j.Alone) {
		return nil
	}
	delete(j.waiting, w.ID)
	return []Joined{o.walks.sorted()}
}

// Expire returns the ways that have waited long enough, or, when all is said, all
// of them.
func (j *Joiner) Expire(now time.Time, all bool) (ways []Joined) {
	for id, o := range j.waiting {
		if all || now.Sub(o.since) >= j.Wait {
			ways = append(ways, o.walks.sorted())
			delete(j.waiting, id)
		}
	}
	slices.SortFunc(ways, func(a, b Joined) int { return a[0].Time.Compare(b[0].Time) })
	return ways
}

// whole reports whether every walk that could go on elsewhere has been followed.
func (o *open) whole(alone bool) bool {
	begun, open := false, 0
	for _, w := range o.walks {
		begun = begun || !w.Followed && !w.Resumed
		if w.Followed || w.Resumed {
			open--
		}
		if w.Carried() && !alone {
			open++
		}
		if w.Verdict.Waits {
			open++
		}
	}
	return begun && open <= 0
}

// sorted has what was first seen first.
func (j Joined) sorted() Joined {
	rank := func(w *Walk) int {
		switch {
		case w.Followed:
			return 2
		case w.Resumed:
			return 1
		}
		return 0
	}
	slices.SortStableFunc(j, func(a, b *Walk) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), a.Time.Compare(b.Time)) })
	return j
}
