package openflow

import "github.com/antrail/antrail/flow"

// A packet-in of an action with pause has a continuation: the remaining actions. Only the switch
// reads it. It has the form of Open vSwitch, so ovs-ofctl prints it. A controller returns it in
// NXT_RESUME, with the packet and its present fields.

// Rest is a list of actions behind a pause, with the table and the cookie of its entry.
type Rest struct {
	Table   uint8
	Cookie  uint64
	Actions []flow.Action
}

// Resume is NXT_RESUME.
type Resume struct {
	InPort uint32
	Fields flow.Match // without in_port, and without headers
	Rests  []Rest     // the innermost list first
	Frame  []byte
}

// Properties of a continuation.
const (
	contConntracked = 0x8003
	contTable       = 0x8004
	contCookie      = 0x8005
	contActions     = 0x8006
)

// nestedPad is the padding behind the head of a property that holds others.
const nestedPad = 4

// encodeContinuation writes the actions behind a pause.
func (p *PacketIn) encodeContinuation(w *writer, v Version) (err error) {
	if len(p.Rests) == 0 {
		return nil
	}
	w.property(pinContinuation, func() {
		w.zeros(nestedPad)
		if state, _ := p.Metadata.Get(flow.CTState); !state.IsZero() {
			w.property(contConntracked, func() {})
		}
		table, cookie := uint8(0), uint64(0)
		for _, r := range p.Rests {
			if r.Table != table {
				table = r.Table
				w.property(contTable, func() { w.u8(table) })
			}
			if r.Cookie != cookie {
				cookie = r.Cookie
				w.property(contCookie, func() { w.zeros(nestedPad); w.u64(cookie) })
			}
			w.property(contActions, func() {
				w.zeros(nestedPad)
				err = firstError(err, w.actions(r.Actions, v))
			})
		}
	})
	return err
}

// decodeResume reads the properties of a packet-in that a controller gives back.
func decodeResume(r *reader, v Version) (Body, error) {
	q := &Resume{InPort: flow.PortNone}
	if err := r.eachProperty("a resumed packet", func(kind uint16, p *reader) error { return q.property(kind, p, v) }); err != nil {
		return nil, err
	}
	switch {
	case q.Frame == nil:
		return nil, fail(BadLength, "a resumed packet lacks its frame")
	case !mayEnter(q.InPort):
		return nil, fail(BadPort, "a packet cannot enter at port %#x", q.InPort)
	}
	return q, nil
}

// property reads one property. It ignores those about the packet-in.
func (q *Resume) property(kind uint16, p *reader, v Version) error {
	switch kind {
	case pinPacket:
		q.Frame = p.rest()
	case pinMetadata:
		return q.metadata(p)
	case pinContinuation:
		p.skip(nestedPad)
		if p.short {
			return fail(BadPropertyLength, "a continuation of less than %d bytes", nestedPad)
		}
		return q.continuation(p, v)
	case pinFullLen, pinBuffer, pinTable, pinCookie, pinReason, pinUserData:
	default:
		return fail(BadPropertyType, "a resumed packet has no property %d", kind)
	}
	return nil
}

// metadata reads the packet's fields. It ignores fields of headers, which only explain
// other fields, and reads the packet instead.
func (q *Resume) metadata(p *reader) error {
	var m flow.Match
	if err := readMatch(&m, p.rest(), nil); err != nil {
		return err
	}
	if port, mask := m.Get(flow.InPort); !mask.IsZero() {
		q.InPort = uint32(port.Lo)
	}
	for id := flow.Reg0; id < flow.EthSrc; id++ {
		if value, mask := m.Get(id); id != flow.InPort && !mask.IsZero() {
			q.Fields.Add(id, value, mask)
		}
	}
	return nil
}

func (q *Resume) continuation(p *reader, v Version) error {
	of := Rest{}
	return p.eachProperty("a continuation", func(kind uint16, part *reader) (err error) {
		switch kind {
		case contTable:
			of.Table = part.u8()
		case contCookie:
			part.skip(nestedPad)
			of.Cookie = part.u64()
		case contActions:
			err = q.rest(of, part, v)
		case contConntracked:
		default:
			err = fail(BadPropertyType, "property %#x of a continuation is not supported", kind)
		}
		return err
	})
}

// rest reads a list of actions of an entry.
func (q *Resume) rest(of Rest, part *reader, v Version) error {
	part.skip(nestedPad)
	a := actionReader{v: v, table: true}
	if err := a.read(part.rest()); err != nil {
		return err
	}
	if err := flow.CheckActions(a.list); err != nil {
		return checkActions(err)
	}
	of.Actions = a.list
	q.Rests = append(q.Rests, of)
	return nil
}
