package openflow

import (
	"encoding/binary"

	"github.com/antrail/antrail/flow"
)

// FlowCommand is what a FlowMod does.
type FlowCommand uint8

// The commands. Modify and Delete take entries within the match; the strict ones take the
// entry of exactly this match and priority.
const (
	FlowAdd FlowCommand = iota
	FlowModify
	FlowModifyStrict
	FlowDelete
	FlowDeleteStrict
)

// AllTables is the table of a change or question about all tables.
const AllTables = 255

// FlowMod is OFPT_FLOW_MOD, or Nicira's NXT_FLOW_MOD in OpenFlow 1.0.
type FlowMod struct {
	Command FlowCommand
	// TableByte is the upper byte of the command in OpenFlow 1.0. It is the table if the connection
	// has set NXT_FLOW_MOD_TABLE_ID; otherwise it must be 0.
	TableByte uint8
	// Entry is the entry to add, or the match that chooses entries. Its table may be AllTables.
	// Its cookie is the new one.
	Entry flow.Entry
	// Cookie and CookieMask choose entries to modify or delete.
	Cookie, CookieMask uint64
	// SetCookie is set if a modification gives its entries the cookie of Entry.
	SetCookie bool
	// OutPort and OutGroup choose entries to delete by an output. flow.PortNone and AnyGroup choose
	// all.
	OutPort, OutGroup uint32
	CheckOverlap      bool
	ResetCounts       bool
	isV10             bool // the message is one of OpenFlow 1.0
}

// AnyGroup is OFPG_ANY; AllGroups is OFPG_ALL.
const (
	AnyGroup  = 0xffffffff
	AllGroups = 0xfffffffc
)

// Flags of a FlowMod.
const (
	flagSendFlowRem  = 1 << 0
	flagCheckOverlap = 1 << 1
	flagResetCounts  = 1 << 2
)

const noBuffer = 0xffffffff

// DecodeFlowMod reads the message b into f, and overwrites all of f. It allocates only the match and
// actions, which may hold parts of b. It reports false for any other message than OFPT_FLOW_MOD, which
// Decode reads. The error is a *Error.
func DecodeFlowMod(b []byte, f *FlowMod) (is bool, err error) {
	if len(b) < headerSize || b[1] != typeFlowMod || !Version(b[0]).known() || int(binary.BigEndian.Uint16(b[2:])) != len(b) {
		return false, nil
	}
	r := reader{b: b[headerSize:]}
	err = f.decode(&r, Version(b[0]))
	if r.short {
		err = r.done()
	}
	return true, err
}

func decodeFlowMod(r *reader, v Version) (Body, error) {
	f := &FlowMod{}
	if err := f.decode(r, v); err != nil {
		return nil, err
	}
	return f, nil
}

// decode reads the body of an OFPT_FLOW_MOD.
func (f *FlowMod) decode(r *reader, v Version) error {
	*f = FlowMod{OutPort: flow.PortNone, OutGroup: AnyGroup}
	if v == V10 {
		m := r.match10()
		f.Entry.Match = m.Mini()
		return f.decode10(r)
	}
	f.Cookie, f.CookieMask = r.u64(), r.u64()
	f.Entry.Table, f.Command = r.u8(), FlowCommand(r.u8())
	f.times(r)
	buffer := r.u32()
	f.OutPort, f.OutGroup = r.u32(), r.u32()
	flags, importance := r.u16(), r.u16()
	if f.Command == FlowAdd {
		f.Entry.Cookie, f.Cookie, f.CookieMask = f.Cookie, 0, 0
	}
	var m flow.Match
	err := r.match(&m)
	f.Entry.Match = m.Mini()
	if err = firstError(err, f.check(buffer, flags, v)); err != nil {
		return err
	}
	if importance != 0 && v >= V14 {
		return fail(FlowModUnknown, "importance is not supported")
	}
	return f.finish(r, v)
}

// times takes timeouts and priority.
func (f *FlowMod) times(r *reader) {
	f.Entry.IdleTimeout, f.Entry.HardTimeout, f.Entry.Priority = r.u16(), r.u16(), r.u16()
}

// decode10 reads what follows the match of OpenFlow 1.0.
func (f *FlowMod) decode10(r *reader) error {
	f.Entry.Cookie = r.u64()
	command := r.u16()
	f.times(r)
	buffer := r.u32()
	f.OutPort = flow.PortOf16(uint32(r.u16()))
	flags := r.u16()
	f.command10(command)
	if err := f.check(buffer, flags, V10); err != nil {
		return err
	}
	return f.finish(r, V10)
}

// command10 splits a command of 16 bits.
func (f *FlowMod) command10(command uint16) {
	f.isV10 = true
	f.TableByte, f.Command = uint8(command>>8), FlowCommand(command)
	f.Entry.Table = AllTables
	f.ResetCounts = f.Command == FlowAdd
	f.SetCookie = f.Entry.Cookie != ^uint64(0) && (f.Command == FlowModify || f.Command == FlowModifyStrict)
}

// decodeNXFlowMod reads NXT_FLOW_MOD.
func decodeNXFlowMod(r *reader, v Version) (Body, error) {
	f := &FlowMod{OutPort: flow.PortNone, OutGroup: AnyGroup}
	f.Entry.Cookie = r.u64()
	command := r.u16()
	f.times(r)
	buffer := r.u32()
	f.OutPort = flow.PortOf16(uint32(r.u16()))
	flags, n := r.u16(), int(r.u16())
	r.skip(6)
	f.command10(command)
	var m flow.Match
	var chosen cookieMatch
	if err := r.matchNXM(&m, n, &chosen); err != nil {
		return nil, err
	}
	f.Cookie, f.CookieMask = chosen.value&chosen.mask, chosen.mask
	if err := f.check(buffer, flags, V10); err != nil {
		return nil, err
	}
	f.Entry.Match = m.Mini()
	return f, f.finish(r, V10)
}

// matchNXM takes a match of NXM of n bytes, and its padding.
func (r *reader) matchNXM(m *flow.Match, n int, cookie *cookieMatch) error {
	if padded(n) > len(r.b) {
		return fail(BadMatchLength, "a match of %d bytes, %d are left", n, len(r.b))
	}
	err := readMatch(m, r.take(n), cookie)
	r.skip(padded(n) - n)
	return err
}

// check returns an error for unsupported values in the fixed part of the message.
func (f *FlowMod) check(buffer uint32, flags uint16, v Version) error {
	known := uint16(flagSendFlowRem | flagCheckOverlap)
	if v >= V13 {
		known |= flagResetCounts
	}
	switch {
	case f.Command > FlowDeleteStrict:
		return fail(FlowBadCommand, "command %d is unknown", f.Command)
	case flags&^known != 0:
		return fail(FlowBadFlags, "flags %#x are not supported", flags&^known)
	case buffer != noBuffer && f.Command < FlowDelete:
		return fail(BufferUnknown, "buffer %#x: this switch does not buffer packets", buffer)
	case f.Command == FlowAdd && f.Entry.Table == AllTables && v >= V13:
		return fail(BadTableID, "an entry cannot be added to table 255")
	}
	f.Entry.SendFlowRem = flags&flagSendFlowRem != 0
	f.CheckOverlap = flags&flagCheckOverlap != 0
	f.ResetCounts = f.ResetCounts || flags&flagResetCounts != 0
	return nil
}

// finish reads the actions, and checks that they fit.
func (f *FlowMod) finish(r *reader, v Version) (err error) {
	if r.short {
		return r.done()
	}
	f.Entry.Actions, err = readEntryActions(r.rest(), v, &f.Entry.Match)
	if err != nil || f.Command >= FlowDelete {
		return err
	}
	if f.Entry.Table != AllTables {
		return checkActions(f.Entry.Check())
	}
	e := f.Entry
	e.Table = 0 // the table is not known yet; goto_table must lead forward at least from 0
	if f.TableByte != AllTables {
		e.Table = f.TableByte
	}
	return checkActions(e.Check())
}

// encode implements Body. Switches send none; tests and other clients do.
func (f *FlowMod) encode(w *writer, v Version) error {
	cookie, mask := f.Cookie, f.CookieMask
	if f.Command == FlowAdd {
		cookie = f.Entry.Cookie
	}
	w.u64(cookie)
	w.u64(mask)
	w.u8(f.Entry.Table)
	w.u8(uint8(f.Command))
	w.u16(f.Entry.IdleTimeout)
	w.u16(f.Entry.HardTimeout)
	w.u16(f.Entry.Priority)
	w.u32(noBuffer)
	w.u32(f.OutPort)
	w.u32(f.OutGroup)
	w.u16(f.flags())
	w.u16(0)
	if v == V10 {
		return fail(BadType, "a flow mod of OpenFlow 1.0 is NXT_FLOW_MOD")
	}
	m := f.Entry.Match.Expand()
	if err := w.match(&m, v); err != nil {
		return err
	}
	return w.entryActions(f.Entry.Actions, v)
}

func (f *FlowMod) flags() (flags uint16) {
	if f.Entry.SendFlowRem {
		flags |= flagSendFlowRem
	}
	if f.CheckOverlap {
		flags |= flagCheckOverlap
	}
	if f.ResetCounts {
		flags |= flagResetCounts
	}
	return flags
}

// AddsIfNone reports whether a modification adds an entry if it selects none. In OpenFlow 1.0 it
// does if it names a cookie.
func (f *FlowMod) AddsIfNone() bool { return f.isV10 && f.SetCookie }
