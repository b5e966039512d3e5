package openflow

import (
	"encoding/binary"
	"slices"

	"github.com/antrail/antrail/flow"
)

// Since OpenFlow 1.1, an entry has instructions: apply actions, and go to a table. Until 1.4 a
// meter is one too. Package flow has all of them as actions, in the order in which they run.

const (
	instGoto          = 1
	instWriteMetadata = 2
	instWriteActions  = 3
	instApply         = 4
	instClear         = 5
	instMeter         = 6
)

// readEntryActions reads the actions of an entry: a list in OpenFlow 1.0, instructions in later
// versions.
func readEntryActions(b []byte, v Version, m *flow.Minimatch) ([]flow.Action, error) {
	if v == V10 {
		return readActions(b, v, m)
	}
	var meter, next flow.Action
	var apply []flow.Action
	seen := uint64(0) // a bit for each kind of instruction
	for len(b) > 0 {
		if len(b) < 8 {
			return nil, fail(BadInstructionLength, "%d bytes follow the instructions", len(b))
		}
		kind, n := binary.BigEndian.Uint16(b), int(binary.BigEndian.Uint16(b[2:]))
		if n < 8 || n%8 != 0 || n > len(b) {
			return nil, fail(BadInstructionLength, "an instruction of %d bytes, of which %d are there", n, len(b))
		}
		if seen>>kind&1 != 0 {
			return nil, fail(DuplicateInstruction, "instruction %d is there twice", kind)
		}
		seen |= 1 << kind
		var err error
		switch {
		case kind == instApply:
			apply, err = readActions(b[8:n], v, m)
		case kind == instGoto && n == 8:
			next = flow.GotoTable{Table: b[4]}
		case kind == instMeter && v < V15 && n == 8:
			meter = flow.MeterAction{ID: binary.BigEndian.Uint32(b[4:])}
		case kind == instWriteMetadata, kind == instWriteActions, kind == instClear:
			err = fail(UnsupportedInstruction, "instruction %d is not supported", kind)
		default:
			err = fail(UnknownInstruction, "instruction %d of %d bytes is unknown", kind, n)
		}
		if err != nil {
			return nil, err
		}
		b = b[n:]
	}
	if meter != nil {
		apply = slices.Insert(apply, 0, meter)
	}
	if next != nil {
		apply = append(apply, next)
	}
	return apply, nil
}

// entryActions writes the actions of an entry as readEntryActions reads them.
func (w *writer) entryActions(all []flow.Action, v Version) error {
	if v == V10 {
		return w.actions(all, v)
	}
	if at := slices.IndexFunc(all, isMeter); at >= 0 && v < V15 { // a meter instruction comes first
		w.instruction(instMeter, all[at].(flow.MeterAction).ID)
		all = slices.Delete(slices.Clone(all), at, at+1)
	}
	var next flow.Action
	if n := len(all); n > 0 {
		if g, ok := all[n-1].(flow.GotoTable); ok {
			next, all = g, all[:n-1]
		}
	}
	if len(all) > 0 {
		start := w.beginAction(instApply)
		w.zeros(4)
		if err := w.actions(all, v); err != nil {
			return err
		}
		if err := w.endAction(start); err != nil {
			return err
		}
	}
	if g, ok := next.(flow.GotoTable); ok {
		w.instruction(instGoto, uint32(g.Table)<<24)
	}
	return nil
}

// instruction writes an instruction with four bytes.
func (w *writer) instruction(kind uint16, v uint32) {
	w.u16(kind)
	w.u16(8)
	w.u32(v)
}

func isMeter(a flow.Action) bool {
	_, is := a.(flow.MeterAction)
	return is
}
