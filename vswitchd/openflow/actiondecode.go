package openflow

import (
	"encoding/binary"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
)

// Actions are read here: each has a type, a length that is a multiple of 8, and a body. Those
// of Nicira are in nicira.go. actionencode.go is the other direction.

// Types of actions. Those up to 10 with "10" are OpenFlow 1.0's.
const (
	actOutput    = 0
	actVLANVID10 = 1
	actVLANPCP10 = 2
	actStrip10   = 3
	actEthSrc10  = 4
	actEthDst10  = 5
	actIPSrc10   = 6
	actIPDst10   = 7
	actTOS10     = 8
	actTpSrc10   = 9
	actTpDst10   = 10
	actPushVLAN  = 17
	actPopVLAN   = 18
	actGroup     = 22
	actSetTTL    = 23
	actDecTTL    = 24
	actSetField  = 25
	actCopyField = 28
	actMeter     = 29
)

// maxDepth bounds how deep ct() and clone() nest, as in package flow/parse.
const maxDepth = 8

// actionReader reads a list of actions.
type actionReader struct {
	v     Version
	m     *flow.Minimatch // of the entry; nil for a group's buckets and packet-outs
	tags  int             // VLAN tags known to be there
	depth int
	inCT  bool
	table bool // output to OFPP_TABLE is allowed: a packet-out
	list  []flow.Action
	nat   *flow.NAT // of ct()
	body  reader    // of the action that is being read
}

// readActions reads the actions of an entry with a match.
func readActions(b []byte, v Version, m *flow.Minimatch) ([]flow.Action, error) {
	a := actionReader{v: v, m: m, list: makeActions(b)}
	if m != nil && m.Implies(flow.NeedVLAN) {
		a.tags = 1
	}
	err := a.read(b)
	return a.list, err
}

// makeActions is an empty list with capacity for the actions of b and one more; nil if b is empty.
func makeActions(b []byte) []flow.Action {
	room := 0
	for rest := b; len(rest) >= 8; room++ {
		rest = rest[min(len(rest), max(8, int(binary.BigEndian.Uint16(rest[2:])))):]
	}
	if room == 0 {
		return nil
	}
	return make([]flow.Action, 0, min(room, 64)+1)
}

// read reads actions until b ends.
func (a *actionReader) read(b []byte) error {
	if a.depth > maxDepth {
		return fail(BadActionArgument, "actions nest deeper than %d levels", maxDepth)
	}
	for len(b) > 0 {
		if len(b) < 8 {
			return fail(BadActionLength, "%d bytes follow the actions", len(b))
		}
		n := int(binary.BigEndian.Uint16(b[2:]))
		if n < 8 || n%8 != 0 || n > len(b) {
			return fail(BadActionLength, "an action of %d bytes, of which %d are there", n, len(b))
		}
		a.body = reader{b: b[4:n]}
		if err := a.readAction(binary.BigEndian.Uint16(b), &a.body); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// addAction adds an action, and follows the VLAN tags.
func (a *actionReader) addAction(x flow.Action) {
	a.tags = flow.TagsAfter(x, a.tags)
	a.list = append(a.list, x)
}

// readAction reads the body of an action.
func (a *actionReader) readAction(kind uint16, r *reader) (err error) {
	switch {
	case kind == experimenterKind:
		err = a.experimenter(r)
	case a.v == V10:
		err = a.standard10(kind, r)
	default:
		err = a.standard(kind, r)
	}
	if err == nil && r.short {
		return fail(BadActionLength, "action %d ends within its fields", kind)
	}
	return err
}

// standard10 reads an action of OpenFlow 1.0.
func (a *actionReader) standard10(kind uint16, r *reader) error {
	switch kind {
	case actOutput:
		return a.output(flow.PortOf16(uint32(r.u16())), r.u16())
	case actVLANVID10:
		a.ensureTag()
		return a.addSetField(flow.VlanVID, uint64(r.u16()))
	case actVLANPCP10:
		a.ensureTag()
		return a.addSetField(flow.VlanPCP, uint64(r.u8()))
	case actStrip10:
		a.addAction(flow.PopVLAN{})
		return nil
	case actEthSrc10, actEthDst10:
		return a.addSetField([]flow.FieldID{flow.EthSrc, flow.EthDst}[kind-actEthSrc10], r.value(6).Lo)
	case actIPSrc10, actIPDst10:
		return a.addSetField([]flow.FieldID{flow.IPSrc, flow.IPDst}[kind-actIPSrc10], uint64(r.u32()))
	case actTOS10:
		return a.addSetField(flow.IPDSCP, uint64(r.u8()>>2))
	case actTpSrc10, actTpDst10:
		return a.addSetField(a.port(int(kind-actTpSrc10)), uint64(r.u16()))
	}
	return fail(BadActionType, "action type %d of OpenFlow 1.0 is not supported", kind)
}

// port is the field of a source (0) or destination (1) port, by the protocol of the match.
func (a *actionReader) port(side int) flow.FieldID {
	proto := uint64(packet.ProtoTCP)
	if a.m != nil {
		v, _ := a.m.Get(flow.IPProto)
		proto = v.Lo
	}
	switch proto {
	case packet.ProtoUDP:
		return []flow.FieldID{flow.UDPSrc, flow.UDPDst}[side]
	case packet.ProtoSCTP:
		return []flow.FieldID{flow.SCTPSrc, flow.SCTPDst}[side]
	}
	return []flow.FieldID{flow.TCPSrc, flow.TCPDst}[side]
}

// ensureTag adds a push_vlan if the packet is not known to have a tag, because OpenFlow 1.0's
// set_vlan_vid adds one.
func (a *actionReader) ensureTag() {
	if a.tags == 0 {
		a.addAction(flow.PushVLAN{EtherType: packet.EtherTypeVLAN})
	}
}

// addSetField adds a set_field of a whole field.
func (a *actionReader) addSetField(id flow.FieldID, v uint64) error {
	f := flow.FieldByID(id)
	if v>>f.Bits != 0 {
		return fail(BadActionArgument, "%#x does not fit into %s", v, f.Name)
	}
	a.addAction(flow.SetField{Field: id, Value: flow.Value{Lo: v}, Mask: flow.Ones(f.Bits)})
	return nil
}

// standard reads an action of OpenFlow 1.3 and later.
func (a *actionReader) standard(kind uint16, r *reader) error {
	switch kind {
	case actOutput:
		return a.output(r.u32(), r.u16())
	case actPushVLAN:
		etherType := r.u16()
		if etherType != packet.EtherTypeVLAN && etherType != packet.EtherTypeQinQ {
			return fail(BadActionArgument, "push_vlan of type %#x", etherType)
		}
		a.addAction(flow.PushVLAN{EtherType: etherType})
	case actPopVLAN:
		a.addAction(flow.PopVLAN{})
	case actGroup:
		a.addAction(flow.GroupAction{ID: r.u32()})
	case actSetTTL:
		return a.addSetField(flow.IPTTL, uint64(r.u8()))
	case actDecTTL:
		a.addAction(flow.DecTTL{})
	case actSetField:
		return a.setField(r, a.v >= V15)
	case actCopyField:
		return a.copyField(r)
	case actMeter:
		return a.meter(r)
	default:
		return fail(BadActionType, "action type %d is not supported", kind)
	}
	return nil
}

// meter reads the action of OpenFlow 1.5, which is an instruction in earlier versions.
func (a *actionReader) meter(r *reader) error {
	if a.v < V15 {
		return fail(BadActionType, "meter is an instruction in %s", a.v)
	}
	a.addAction(flow.MeterAction{ID: r.u32()})
	return nil
}

// output adds an output. maxLen only matters for the controller.
func (a *actionReader) output(port uint32, maxLen uint16) error {
	switch port {
	case flow.PortInPort:
		a.addAction(flow.OutputInPort{})
	case flow.PortNormal:
		a.addAction(flow.Normal{})
	case flow.PortFlood:
		a.addAction(flow.Flood{})
	case flow.PortAll:
		a.addAction(flow.All{})
	case flow.PortController:
		a.addAction(flow.Controller{MaxLen: maxLen, Reason: "action"})
	case flow.PortLocal:
		a.addAction(flow.Output{Port: port})
	case flow.PortTable:
		if !a.table {
			return fail(BadOutPort, "only a packet-out may output to OFPP_TABLE")
		}
		a.addAction(flow.Resubmit{InPort: flow.PortInPort, Table: 0})
	default:
		if port > flow.MaxPort {
			return fail(BadOutPort, "%#x is not the number of a port", port)
		}
		a.addAction(flow.Output{Port: port})
	}
	return nil
}

// setField reads a field with its value, and with a mask if that is allowed.
func (a *actionReader) setField(r *reader, mayMask bool) error {
	o, err := r.oxm()
	if err != nil {
		return err
	}
	id, ok := fieldOf[o.header]
	if !ok {
		return unknownField(o.header, BadActionSetType)
	}
	f := flow.FieldByID(id)
	bits, mask := f.Bits, flow.Ones(f.Bits)
	if id == flow.VlanVID {
		bits = 13 // with OFPVID_PRESENT
	}
	if o.masked {
		if !mayMask {
			return fail(BadActionSetType, "set_field takes no mask in %s", a.v)
		}
		mask = o.mask.And(mask)
	}
	switch {
	case flow.IsTunMetadata(id) && mask.IsZero():
		return fail(BadActionSetArgument, "set_field writes no bit of %s", f.Name)
	case f.ReadOnly:
		return fail(BadActionSetArgument, "%s is read-only", f.Name)
	case o.value.And(flow.Ones(bits)) != o.value:
		return fail(BadActionSetArgument, "the value of %s has more than %d bits", f.Name, bits)
	case id == flow.VlanVID && o.value.Lo&packet.VLANPresent == 0:
		return fail(BadActionSetArgument, "the value of vlan_vid lacks the bit OFPVID_PRESENT")
	case id == flow.ArpOp && o.value.Lo > 255 || id == flow.IPTOS && o.value.Lo&3 != 0:
		return fail(BadActionSetArgument, "%d is not a value of %s", o.value.Lo, f.Name)
	}
	value := o.value.And(flow.Ones(f.Bits))
	if !value.AndNot(mask).IsZero() {
		return fail(BadActionSetArgument, "the value of %s has bits outside its mask", f.Name)
	}
	a.addAction(maskedSet(f, value, mask, o.masked))
	return nil
}

// maskedSet is a set_field. It is a load if the text of entries has only that form: for a masked
// field whose bits do not fill its bytes.
func maskedSet(f *flow.Field, v, mask flow.Value, masked bool) flow.Action {
	if f.ID == flow.InPort {
		v.Lo = uint64(flow.PortOf16(uint32(v.Lo)))
	}
	if masked && mask == flow.Ones(f.Bits) && f.Bits%8 != 0 && f.ID != flow.VlanVID {
		return flow.Load{Dst: f.Full(), Value: v}
	}
	return flow.SetField{Field: f.ID, Value: v, Mask: mask}
}

// copyField reads copy_field of OpenFlow 1.5, which is Nicira's reg_move.
func (a *actionReader) copyField(r *reader) error {
	if a.v < V15 {
		return fail(BadActionType, "copy_field is an action of OpenFlow 1.5")
	}
	n, src, dst := int(r.u16()), int(r.u16()), int(r.u16())
	r.skip(2)
	return a.move(r, n, src, dst)
}

// move reads the two fields of a move.
func (a *actionReader) move(r *reader, n, srcOfs, dstOfs int) error {
	from, err := r.field()
	if err != nil {
		return err
	}
	to, err := r.field()
	if err != nil {
		return err
	}
	src, err := subfieldOf(from, srcOfs, n)
	if err != nil {
		return err
	}
	dst, err := subfieldOf(to, dstOfs, n)
	if err != nil {
		return err
	}
	if f := flow.FieldByID(to); f.ReadOnly {
		return fail(BadActionArgument, "%s is read-only", f.Name)
	}
	a.addAction(flow.Move{Src: src, Dst: dst})
	return nil
}

// checkActions is the OpenFlow error for an error of flow.CheckActions or flow.Entry.Check.
func checkActions(err error) error {
	wrong, ok := err.(*flow.ActionError)
	if !ok {
		return err
	}
	kind := BadActionArgument
	switch wrong.Action.(type) {
	case flow.GotoTable:
		kind = BadInstructionTable
	default:
		if needsMatch(wrong.Msg) {
			kind = MatchInconsistent
		}
	}
	return fail(kind, "%s", wrong.Error())
}
