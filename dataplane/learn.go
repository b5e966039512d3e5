package dataplane

import (
	"slices"
	"time"

	"github.com/antrail/antrail/flow"
)

// learn makes an entry out of the packet, as the learn action says
// (ovs-actions(7), learn). The next packet that is looked up sees it.
func (k *walk) learn(a *flow.Learn) {
	e := learned(a, &k.key)
	if k.trace != nil {
		k.trace.learn(k, e)
	}
	if k.dry() {
		return
	}
	k.w.rec.forbid()
	t := k.prog.tables[a.Table]
	if !t.live.learned.refresh(e, k.w.now) {
		k.w.sw.addLearned(t, newEntry(e, 0, k.w.now), a.Limit)
		k.w.stretches.keepUp(k.prog, k.w.sw) // this packet may look the table up too
	}
}

// learned is the entry that a learn action makes for a packet.
func learned(a *flow.Learn, k *flow.Key) *flow.Entry {
	e := &flow.Entry{
		Table: a.Table, Priority: a.Priority, Cookie: a.Cookie,
		IdleTimeout: a.IdleTimeout, HardTimeout: a.HardTimeout,
	}
	for _, s := range a.Specs {
		v := s.Immediate
		if s.FromField {
			v = s.Src.Get(k)
		}
		switch s.Kind {
		case flow.LearnMatch:
			s.Dst.Put(&e.Match.Value, v)
			s.Dst.Put(&e.Match.Mask, flow.Ones(int(s.Dst.N)))
		case flow.LearnLoad:
			id, value, mask := inPlace(s.Dst, v)
			e.Actions = append(e.Actions, flow.SetField{Field: id, Value: value, Mask: mask})
		case flow.LearnOutput:
			e.Actions = append(e.Actions, flow.Output{Port: widenPort(uint32(v.Lo))})
		}
	}
	return e
}

// Learned is an entry that a packet made in another switch, or in one before.
type Learned struct {
	*flow.Entry
	Age, Idle time.Duration // since it was made, and since a packet met it
}

// Relearn installs learned entries beside those that are there; one whose time
// has passed is left out. The error names the first that no learn action makes,
// or whose table is not there; then none is installed.
func (s *Switch) Relearn(all []Learned) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.program.Load()
	if p == nil {
		return errNoPipeline
	}
	for _, l := range all {
		if p.tables[l.Table] == nil || slices.ContainsFunc(l.Actions, neverLearned) {
			return &InvalidEntryError{l.Text(flow.Format{Names: p.names}), "no learn action makes such an entry"}
		}
	}
	if !p.labels && slices.ContainsFunc(all, func(l Learned) bool { return entryLabels(l.Entry) }) {
		n := *p
		n.labels = true
		p = &n
		s.program.Store(p)
	}
	now := s.clock()
	for _, l := range all {
		e := newEntry(l.Entry, 0, now-int64(l.Age))
		e.used.Store(now - int64(l.Idle))
		if !e.expired(now) {
			s.addLearned(p.tables[l.Table], e, 0)
		}
	}
	return nil
}

// neverLearned says whether learned does not make an action. A load is how text says
// the set_field of a part of a field for which set_field takes no mask.
func neverLearned(a flow.Action) bool {
	switch a.(type) {
	case flow.SetField, flow.Load, flow.Output:
		return false
	}
	return true
}

// maker is what a learn action with delete_learned writes into its entries.
type maker struct {
	table  uint8
	cookie uint64
}

// makers are the learn actions with delete_learned of a program's entries.
func (p *program) makers() map[maker]bool {
	m := make(map[maker]bool)
	for _, t := range p.tables {
		if t == nil {
			continue
		}
		for _, e := range t.learners {
			forEachLearn(e, func(l *flow.Learn) { m[maker{l.Table, l.Cookie}] = true })
		}
	}
	return m
}

// forEachLearn visits an entry's learn actions with delete_learned.
func forEachLearn(e *entry, visit func(*flow.Learn)) {
	forEachAction(e.Actions, func(a flow.Action) {
		if l, ok := a.(*flow.Learn); ok && l.DeleteLearned {
			visit(l)
		}
	})
}

// learns says whether an entry has a learn action with delete_learned.
func learns(e *entry) (found bool) {
	forEachLearn(e, func(*flow.Learn) { found = true })
	return found
}

// forgetLearned removes what deleted learn actions with delete_learned had
// made: entries of their table and cookie that no remaining one still makes.
func (s *Switch) forgetLearned(before, after *program) {
	if sameLearners(before, after) {
		return
	}
	remaining := after.makers()
	for m := range before.makers() {
		if t := after.tables[m.table]; t != nil && !remaining[m] {
			t.live.learned.removeIf(func(e *entry) bool { return e.Cookie == m.cookie })
			s.learnings.Add(1)
		}
	}
}

// sameLearners says whether a change left all entries alone that make entries
// and take them along.
func sameLearners(before, after *program) bool {
	for id, t := range after.tables {
		if old := before.tables[id]; t != old && !slices.Equal(t.learning(), old.learning()) {
			return false
		}
	}
	return true
}

// learning is the table's learners, none of no table.
func (t *table) learning() []*entry {
	if t == nil {
		return nil
	}
	return t.learners
}
