package program

import (
	"slices"

	"github.com/antrail/antrail/flow"
)

// NewLearned is the entry that a learn action makes for a packet.
func NewLearned(a *flow.Learn, k *flow.Key) *flow.Entry {
	e := &flow.Entry{
		Table: a.Table, Priority: a.Priority, Cookie: a.Cookie,
		IdleTimeout: a.IdleTimeout, HardTimeout: a.HardTimeout,
	}
	var m flow.Match
	for _, s := range a.Specs {
		v := s.Immediate
		if s.FromField {
			v = s.Src.Get(k)
		}
		switch s.Kind {
		case flow.LearnMatch:
			s.Dst.Put(&m.Value, v)
			s.Dst.Put(&m.Mask, flow.Ones(int(s.Dst.N)))
		case flow.LearnLoad:
			id, value, mask := InPlace(s.Dst, v)
			e.Actions = append(e.Actions, flow.SetField{Field: id, Value: value, Mask: mask})
		case flow.LearnOutput:
			e.Actions = append(e.Actions, flow.Output{Port: WidenPort(uint32(v.Lo))})
		}
	}
	e.Match = m.Mini()
	return e
}

// NeverLearned says whether NewLearned never makes an action. It accepts a load, because text
// uses one for part of a field that set_field cannot mask.
func NeverLearned(a flow.Action) bool {
	switch a.(type) {
	case flow.SetField, flow.Load, flow.Output:
		return false
	}
	return true
}

// maker is the table and cookie that a learn action with delete_learned writes into its entries.
type maker struct {
	Table  uint8
	Cookie uint64
}

// Makers are the learn actions with delete_learned of a program's entries.
func (p *Program) Makers() map[maker]bool {
	m := make(map[maker]bool)
	for _, t := range p.EachTable() {
		for _, e := range t.Learners() {
			forEachLearn(e.Entry, func(l *flow.Learn) { m[maker{l.Table, l.Cookie}] = true })
		}
	}
	return m
}

// forEachLearn visits an entry's learn actions with delete_learned.
func forEachLearn(e *flow.Entry, visit func(*flow.Learn)) {
	forEachAction(e.Actions, func(a flow.Action) {
		if l, ok := a.(*flow.Learn); ok && l.DeleteLearned {
			visit(l)
		}
	})
}

// learns says whether an entry has a learn action with delete_learned.
func learns(e *flow.Entry) (found bool) {
	forEachLearn(e, func(*flow.Learn) { found = true })
	return found
}

// SameLearners says whether a change kept all entries with a learn action with delete_learned.
func SameLearners(before, after *Program) bool {
	for id, t := range after.Tables {
		if old := before.Tables[id]; t != old && !slices.Equal(t.Learners(), old.Learners()) {
			return false
		}
	}
	return true
}
