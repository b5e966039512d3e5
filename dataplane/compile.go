package dataplane

import "github.com/antrail/antrail/flow"

// Actions are compiled where that saves work per packet: a value that an entry
// puts into a register or a mark is found as words of the key when the entry is
// installed, not field by field for each packet. Everything else runs as it is
// written.

// write is a set_field or load of a metadata field. It stands in for the action
// that it was compiled from, which traces show.
type write struct {
	flow.Action
	index       int // word of the key
	value, mask uint64
}

// compiled is a list of actions as packets run it. The list given stays as it
// is.
func compiled(actions []flow.Action) []flow.Action {
	all := make([]flow.Action, len(actions))
	for i, a := range actions {
		all[i] = compiledAction(a)
	}
	return all
}

func compiledAction(a flow.Action) flow.Action {
	switch a := a.(type) {
	case flow.SetField:
		return compiledWrite(a, a.Field, a.Value.And(a.Mask), a.Mask)
	case flow.Load:
		id, value, mask := inPlace(a.Dst, a.Value)
		return compiledWrite(a, id, value, mask)
	case flow.Clone:
		return flow.Clone{Actions: compiled(a.Actions)}
	}
	return a
}

// compiledWrite is the action that writes bits of a field, as a write when they
// lie in one word and no header of the frame follows them.
func compiledWrite(a flow.Action, id flow.FieldID, value, mask flow.Value) flow.Action {
	f := flow.FieldByID(id)
	index := f.Off / 8
	if f.Off >= flow.HeaderStart || index != (f.Off+f.Size-1)/8 {
		return a
	}
	var v, m flow.Key
	f.Put(&v, value, mask)
	f.Put(&m, mask, mask)
	return &write{a, index, v.Word(index), m.Word(index)}
}
