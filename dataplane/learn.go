package dataplane

import (
	"slices"

	"github.com/antrail/antrail/dataplane/lookup"
	"github.com/antrail/antrail/dataplane/program"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
)

// learn makes an entry from the packet, as the learn action says (ovs-actions(7), learn). It is
// visible to the next lookup.
func (k *walk) learn(a *flow.Learn) {
	e := program.NewLearned(a, &k.key)
	k.noteLearn(e)
	if k.dry() {
		return
	}
	t := k.prog.Tables[a.Table]
	if !t.Live.Learned.Refresh(e, k.w.now) {
		k.w.sw.addLearned(t, program.LearnedEntry(e, k.w.now), a.Limit)
		k.w.megaflows.BeginWalk(k.prog, k.w.sw.learners.Load(), k.w.sw.awoken.Load()) // this packet may look the table up too
	}
}

// Relearn installs learned entries and keeps those that exist. It leaves out entries whose time
// has passed. If an entry's table is missing, or no learn action can make the entry, Relearn
// installs none. The error names the first of these.
func (s *Switch) Relearn(all []telemetry.Learned) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.program.Load()
	if p == nil {
		return errNoPipeline
	}
	for _, l := range all {
		if p.Tables[l.Table] == nil || slices.ContainsFunc(l.Actions, program.NeverLearned) {
			return &program.InvalidEntryError{Text: l.Text(flow.Format{Names: p.Names}), Reason: "no learn action makes such an entry"}
		}
	}
	if !p.UsesFlowLabel && slices.ContainsFunc(all, func(l telemetry.Learned) bool { return program.EntryUsesFlowLabel(l.Entry) }) {
		n := *p
		n.UsesFlowLabel = true
		p = &n
		s.program.Store(p)
	}
	now := s.clock()
	for _, l := range all {
		e := program.LearnedEntry(l.Entry, now-int64(l.Age))
		e.Used.Store(now - int64(l.Idle))
		if !e.Expired(now) {
			s.addLearned(p.Tables[l.Table], e, 0)
		}
	}
	return nil
}

// forgetLearned removes the entries of deleted learn actions with delete_learned. Those are the
// entries of their table and cookie, unless a remaining action still makes them.
func (s *Switch) forgetLearned(before, after *program.Program) {
	if program.SameLearners(before, after) {
		return
	}
	remaining := after.Makers()
	for m := range before.Makers() {
		if t := after.Tables[m.Table]; t != nil && !remaining[m] {
			t.Live.Learned.RemoveIf(func(e *lookup.Entry) bool { return e.Cookie == m.Cookie })
			s.countLearning()
		}
	}
}

// expireEntries removes the entries whose timeouts have passed. It returns those that the
// controller wants to know about.
func (s *Switch) expireEntries(now int64) (told []*telemetry.FlowRemoved) {
	s.mu.Lock() // an entry installed meanwhile under the identity of an old one stays
	defer s.mu.Unlock()
	s.foldPacketCounters()
	var gone []*lookup.Entry
	for _, t := range s.current().EachTable() {
		learned := t.Live.Learned.RemoveIf(func(e *lookup.Entry) bool { return e.Expired(now) })
		if len(learned) > 0 {
			s.countLearning()
			told = append(told, removedEntries(learned, now)...)
		}
		if t.Static.HasTimeouts() {
			t.Static.All(func(e *lookup.Entry) {
				if e.Expired(now) {
					gone = append(gone, e)
				}
			})
		}
	}
	if len(gone) > 0 {
		b := &flow.Bundle{}
		for _, e := range gone {
			b.Delete = append(b.Delete, e.Entry)
		}
		s.apply(b) // nothing that remains can depend on an entry
	}
	return append(told, removedEntries(gone, now)...)
}

// removedEntries selects the expired entries that the controller wants to know about.
func removedEntries(gone []*lookup.Entry, now int64) (told []*telemetry.FlowRemoved) {
	for _, e := range gone {
		if e.SendFlowRem {
			told = append(told, &telemetry.FlowRemoved{Flow: statsOf(e, now), Hard: e.HardExpired(now)})
		}
	}
	return told
}
