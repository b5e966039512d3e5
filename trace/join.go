package trace

import (
	"cmp"
	"slices"
	"time"
)

// Joined is the known way of a packet: its walk on the Node that saw it first,
// followed by those with the same id.
type Joined []*Walk

// Joiner joins the walks of several Nodes. If a packet went to another Node, its
// walk waits for the one there, for a limited time.
type Joiner struct {
	// Wait is how long a walk waits for the others.
	Wait time.Duration
	// Alone is set if there are no walks of other Nodes.
	Alone   bool
	waiting map[string]*open
}

// open is a way that may be incomplete.
type open struct {
	walks Joined
	since time.Time
}

// Add adds a walk and returns the way that it completes, if any.
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

// Expire returns the ways that have waited long enough; with all set, all ways.
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

// sorted puts the walk that was seen first in front.
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
