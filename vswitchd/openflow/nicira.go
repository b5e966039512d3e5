package openflow

import (
	"strings"

	"github.com/antrail/antrail/flow"
)

// Actions of Nicira are actions of an experimenter: a subtype of 16 bits and a body.

// Subtypes.
const (
	nxResubmit      = 1
	nxSetTunnel     = 2
	nxMove          = 6
	nxLoad          = 7
	nxNote          = 8
	nxSetTunnel64   = 9
	nxResubmitTable = 14
	nxOutputReg     = 15
	nxLearn         = 16
	nxDecTTL        = 18
	nxController    = 20
	nxOutputReg2    = 32
	nxLoad2         = 33
	nxConjunction   = 34
	nxCT            = 35
	nxNAT           = 36
	nxController2   = 37
	nxGroup         = 40
	nxClone         = 42
	nxCTClear       = 43
	nxResubmitCT    = 44
	nxLearn2        = 45
)

// needsMatch reports whether the error of an action is that its match lacks a prerequisite.
func needsMatch(msg string) bool { return strings.Contains(msg, "in the match") }

// experimenter reads an action of an experimenter. The only one is Nicira.
func (a *actionReader) experimenter(r *reader) error {
	if vendor := r.u32(); vendor != nicira {
		return fail(BadActionExperimenter, "no actions of experimenter %#x are supported", vendor)
	}
	subtype := r.u16()
	read := nxActions[subtype]
	if read == nil {
		return fail(BadActionExperimenterType, "Nicira's action %d is not supported", subtype)
	}
	return read(a, r)
}

var nxActions map[uint16]func(*actionReader, *reader) error

func init() { // ct and clone hold actions
	nxActions = map[uint16]func(*actionReader, *reader) error{
		nxResubmit:  (*actionReader).resubmit,
		nxSetTunnel: func(a *actionReader, r *reader) error { r.skip(2); return a.addSetField(flow.TunID, uint64(r.u32())) },
		nxMove:      (*actionReader).regMove,
		nxLoad:      (*actionReader).load,
		nxNote: func(a *actionReader, r *reader) error {
			a.addAction(flow.Note{Bytes: append([]byte(nil), r.rest()...)})
			return nil
		},
		nxSetTunnel64:   func(a *actionReader, r *reader) error { r.skip(6); return a.addSetField(flow.TunID, r.u64()) },
		nxResubmitTable: (*actionReader).resubmitTable,
		nxOutputReg:     (*actionReader).outputReg,
		nxLearn:         (*actionReader).learn,
		nxDecTTL:        func(a *actionReader, _ *reader) error { a.addAction(flow.DecTTL{}); return nil },
		nxController:    (*actionReader).controller,
		nxOutputReg2:    (*actionReader).outputReg2,
		nxLoad2:         func(a *actionReader, r *reader) error { return a.setField(r, true) },
		nxConjunction:   (*actionReader).conjunction,
		nxCT:            (*actionReader).ct,
		nxNAT:           (*actionReader).readNAT,
		nxController2:   (*actionReader).controller2,
		nxGroup: func(a *actionReader, r *reader) error {
			r.skip(2)
			a.addAction(flow.GroupAction{ID: r.u32()})
			return nil
		},
		nxClone:      (*actionReader).clone,
		nxCTClear:    func(a *actionReader, _ *reader) error { a.addAction(flow.CTClear{}); return nil },
		nxResubmitCT: (*actionReader).resubmitCT,
		nxLearn2:     (*actionReader).learn2,
	}
}

func (a *actionReader) resubmit(r *reader) error {
	port := flow.PortOf16(uint32(r.u16()))
	if port == flow.PortInPort {
		return fail(BadActionArgument, "resubmit to in_port in the same table never ends")
	}
	a.addAction(flow.Resubmit{InPort: port, Table: flow.CurrentTable})
	return nil
}

func (a *actionReader) resubmitTable(r *reader) error {
	x := flow.Resubmit{InPort: flow.PortOf16(uint32(r.u16())), Table: r.u8()}
	if x.InPort == flow.PortInPort && x.Table == flow.CurrentTable {
		return fail(BadActionArgument, "resubmit names neither a port nor a table")
	}
	a.addAction(x)
	return nil
}

func (a *actionReader) resubmitCT(r *reader) error {
	err := a.resubmitTable(r)
	if err == nil {
		x := a.list[len(a.list)-1].(flow.Resubmit)
		x.CT = true
		a.list[len(a.list)-1] = x
	}
	return err
}

func (a *actionReader) regMove(r *reader) error {
	n, src, dst := int(r.u16()), int(r.u16()), int(r.u16())
	return a.move(r, n, src, dst)
}

// ofsBits reads an offset of 10 bits and a width less 1 of 6 bits.
func ofsBits(v uint16) (ofs, n int) { return int(v >> 6), int(v&0x3f) + 1 }

// bitsOf is the inverse of ofsBits.
func bitsOf(s flow.Subfield) uint16 { return uint16(s.Ofs)<<6 | uint16(s.N-1) }

func (a *actionReader) load(r *reader) error {
	ofs, n := ofsBits(r.u16())
	id, err := r.field()
	if err != nil {
		return err
	}
	dst, err := subfieldOf(id, ofs, n)
	value := flow.Value{Lo: r.u64()}
	switch f := flow.FieldByID(id); {
	case err != nil:
		return err
	case f.ReadOnly || id == flow.VlanVID:
		return fail(BadActionArgument, "%s cannot be loaded", f.Name)
	case value.And(flow.Ones(n)) != value:
		return fail(BadActionArgument, "%#x does not fit into %d bits", value.Lo, n)
	case id == flow.ArpOp && value.Lo<<ofs > 255 || id == flow.IPTOS && value.Lo<<ofs&3 != 0:
		return fail(BadActionArgument, "%d is not a value of %s", value.Lo, f.Name)
	}
	if id == flow.InPort && n == 16 {
		value.Lo = uint64(flow.PortOf16(uint32(value.Lo)))
	}
	a.addAction(flow.Load{Dst: dst, Value: value})
	return nil
}

func (a *actionReader) outputReg(r *reader) error {
	ofs, n := ofsBits(r.u16())
	return a.addOutputReg(r, ofs, n)
}

func (a *actionReader) outputReg2(r *reader) error {
	ofs, n := ofsBits(r.u16())
	r.skip(2) // max_len, which only matters for the controller
	return a.addOutputReg(r, ofs, n)
}

func (a *actionReader) addOutputReg(r *reader, ofs, n int) error {
	id, err := r.field()
	if err != nil {
		return err
	}
	src, err := subfieldOf(id, ofs, n)
	if err == nil {
		a.addAction(flow.OutputReg{Src: src})
	}
	return err
}

func (a *actionReader) conjunction(r *reader) error {
	clause, n, id := r.u8(), r.u8(), r.u32()
	if n < 2 || n > 64 || clause >= n {
		return fail(BadActionArgument, "clause %d of a conjunction of %d", clause, n)
	}
	a.addAction(flow.Conjunction{ID: id, Clause: clause + 1, N: n})
	return nil
}

// reasons are the reasons of packet-ins by their numbers.
var reasons = []string{"no_match", "action", "invalid_ttl", "action_set", "group", "packet_out"}

func reasonNo(name string) uint8 {
	for i, r := range reasons {
		if r == name {
			return uint8(i)
		}
	}
	return 1
}

func reasonNamed(no uint8) (string, error) {
	if int(no) >= len(reasons) {
		return "", fail(BadActionArgument, "packet-ins have no reason %d", no)
	}
	return reasons[no], nil
}

func (a *actionReader) controller(r *reader) (err error) {
	x := flow.Controller{MaxLen: r.u16(), ID: r.u16()}
	x.Reason, err = reasonNamed(r.u8())
	a.addAction(x)
	return err
}

// Properties of NXAST_CONTROLLER2.
const (
	ctrlMaxLen = iota
	ctrlID
	ctrlReason
	ctrlUserData
	ctrlPause
	ctrlMeter
)

func (a *actionReader) controller2(r *reader) error {
	x := flow.Controller{MaxLen: 65535, Reason: "action"}
	r.skip(6)
	err := r.eachProperty("a controller action", func(kind uint16, p *reader) (err error) {
		switch kind {
		case ctrlMaxLen:
			x.MaxLen = p.u16()
		case ctrlID:
			x.ID = p.u16()
		case ctrlReason:
			x.Reason, err = reasonNamed(p.u8())
		case ctrlUserData:
			x.UserData = append([]byte(nil), p.rest()...)
		case ctrlPause:
			x.Pause = true
		case ctrlMeter:
			x.MeterID = p.u32()
		default:
			err = fail(BadPropertyType, "a controller action has no property %d", kind)
		}
		return err
	})
	a.addAction(x)
	return err
}

// eachProperty calls f with each of the remaining properties. of names the message or action in
// errors.
func (r *reader) eachProperty(of string, f func(kind uint16, body *reader) error) error {
	for len(r.b) > 0 {
		kind, body, err := r.property()
		if err == nil {
			err = f(kind, body)
		}
		if err == nil && body.short {
			err = fail(BadPropertyLength, "property %#x of %s is too short", kind, of)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// property takes a property: a type, a length, and a body that is padded to 8 bytes.
func (r *reader) property() (kind uint16, body *reader, err error) {
	kind, n := r.u16(), int(r.u16())
	if r.short || n < 4 || n-4 > len(r.b) {
		return 0, nil, fail(BadPropertyLength, "property %d of %d bytes", kind, n)
	}
	body = &reader{b: r.take(n - 4)}
	r.take(min(padded(n)-n, len(r.b)))
	return kind, body, nil
}

func (a *actionReader) clone(r *reader) error {
	r.skip(6)
	inner := actionReader{v: a.v, m: a.m, tags: a.tags, depth: a.depth + 1}
	err := inner.read(r.rest())
	a.addAction(flow.Clone{Actions: inner.list})
	return err
}
