package dataplane

import "github.com/antrail/antrail/flow"

// learn makes an entry out of the packet, as the learn action says
// (ovs-actions(7), learn). The next packet that is looked up sees it.
func (k *walk) learn(a *flow.Learn) {
	if k.trace != nil {
		k.trace.learn(k, learned(a, &k.key))
		return
	}
	t := k.prog.tables[a.Table]
	k.w.sw.installLearned(t, learned(a, &k.key), a.Limit, k.w.now)
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

// forgetLearned removes what deleted learn actions with delete_learned had
// made: entries of their table and cookie that no remaining one still makes.
func (s *Switch) forgetLearned(before, after *program) {
	type maker struct {
		table  uint8
		cookie uint64
	}
	makers := func(p *program) map[maker]bool {
		m := make(map[maker]bool)
		p.forEachAction(func(a flow.Action) {
			if l, ok := a.(*flow.Learn); ok && l.DeleteLearned {
				m[maker{l.Table, l.Cookie}] = true
			}
		})
		return m
	}
	remaining := makers(after)
	for m := range makers(before) {
		if t := after.tables[m.table]; t != nil && !remaining[m] {
			t.live.learned.removeIf(func(e *entry) bool { return e.Cookie == m.cookie })
		}
	}
}
