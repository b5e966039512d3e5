package openflow

import (
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
)

// Actions are written here, in the form that Open vSwitch chooses in a version. Actions that a
// version lacks are left out, as Open vSwitch does: meters and push_vlan in OpenFlow 1.0.

// actions writes a list of actions.
func (w *writer) actions(all []flow.Action, v Version) error {
	for _, a := range all {
		if err := w.action(a, v); err != nil {
			return err
		}
	}
	return nil
}

// beginAction writes the head of an action of OpenFlow, and returns its offset.
func (w *writer) beginAction(kind uint16) (start int) {
	start = w.len()
	w.u16(kind)
	w.u16(0)
	return start
}

// nxAction writes the head of an action of Nicira, and returns its offset.
func (w *writer) nxAction(subtype uint16) (start int) {
	start = w.beginAction(experimenterKind)
	w.u32(nicira)
	w.u16(subtype)
	return start
}

// endAction pads an action and sets its length.
func (w *writer) endAction(start int) error {
	w.pad(start)
	n := w.len() - start
	if n > maxMessage {
		return fail(BadActionLength, "an action of %d bytes is too large", n)
	}
	w.set16(start+2, n)
	return nil
}

// action writes an action.
func (w *writer) action(a flow.Action, v Version) error {
	switch a := a.(type) {
	case flow.Output:
		return w.output(a.Port, 0, v)
	case flow.OutputInPort:
		return w.output(flow.PortInPort, 0, v)
	case flow.Normal:
		return w.output(flow.PortNormal, 0, v)
	case flow.Flood:
		return w.output(flow.PortFlood, 0, v)
	case flow.All:
		return w.output(flow.PortAll, 0, v)
	case flow.Controller:
		return w.controller(&a, v)
	case flow.OutputReg:
		return w.outputReg(a, v)
	case flow.GotoTable:
		return w.resubmit(flow.Resubmit{InPort: flow.PortInPort, Table: a.Table})
	case flow.Resubmit:
		return w.resubmit(a)
	case flow.SetField:
		return w.set(a.Field, a.Value, a.Mask, a.Mask != flow.Ones(flow.FieldByID(a.Field).Bits), v)
	case flow.Load:
		return w.setLoad(a, v)
	case flow.Move:
		return w.move(a, v)
	case flow.DecTTL:
		return w.bare(actDecTTL, nxDecTTL, v)
	case flow.PushVLAN:
		return w.pushVLAN(a, v)
	case flow.PopVLAN:
		if v == V10 {
			return w.endAction(w.beginAction(actStrip10))
		}
		return w.endAction(w.beginAction(actPopVLAN))
	case *flow.CT:
		return w.appendCT(a, v)
	case flow.CTClear:
		return w.endAction(w.nxAction(nxCTClear))
	case flow.GroupAction:
		return w.group(a.ID, v)
	case flow.Conjunction:
		start := w.nxAction(nxConjunction)
		w.u8(a.Clause - 1)
		w.u8(a.N)
		w.u32(a.ID)
		return w.endAction(start)
	case flow.MeterAction:
		return w.meter(a.ID, v)
	case flow.Clone:
		start := w.nxAction(nxClone)
		w.zeros(6)
		if err := w.actions(a.Actions, v); err != nil {
			return err
		}
		return w.endAction(start)
	case flow.Note:
		start := w.nxAction(nxNote)
		w.bytes(a.Bytes)
		return w.endAction(start)
	case *flow.Learn:
		return w.appendLearn(a, v)
	}
	return fail(BadActionType, "%T has no form in OpenFlow", a)
}

// bare writes an action without operands: OpenFlow's own, or Nicira's in 1.0.
func (w *writer) bare(kind, subtype uint16, v Version) error {
	if v == V10 {
		return w.endAction(w.nxAction(subtype))
	}
	return w.endAction(w.beginAction(kind))
}

func (w *writer) output(port uint32, maxLen uint16, v Version) error {
	start := w.beginAction(actOutput)
	if v == V10 {
		w.u16(uint16(port))
	} else {
		w.u32(port)
	}
	w.u16(maxLen)
	return w.endAction(start)
}

// controller writes a packet-in in the shortest form that has all its options.
func (w *writer) controller(a *flow.Controller, v Version) error {
	reason := reasonNo(a.Reason)
	switch {
	case len(a.UserData) != 0 || a.Pause || a.MeterID != 0:
		return w.controller2(a, reason)
	case a.ID == 0 && reason == 1:
		return w.output(flow.PortController, a.MaxLen, v)
	}
	start := w.nxAction(nxController)
	w.u16(a.MaxLen)
	w.u16(a.ID)
	w.u8(reason)
	w.u8(0)
	return w.endAction(start)
}

func (w *writer) controller2(a *flow.Controller, reason uint8) error {
	start := w.nxAction(nxController2)
	w.zeros(6)
	if a.MaxLen != 65535 {
		w.property(ctrlMaxLen, func() { w.u16(a.MaxLen) })
	}
	if a.ID != 0 {
		w.property(ctrlID, func() { w.u16(a.ID) })
	}
	if reason != 1 {
		w.property(ctrlReason, func() { w.u8(reason) })
	}
	if len(a.UserData) != 0 {
		w.property(ctrlUserData, func() { w.bytes(a.UserData) })
	}
	if a.Pause {
		w.property(ctrlPause, func() {})
	}
	if a.MeterID != 0 {
		w.property(ctrlMeter, func() { w.u32(a.MeterID) })
	}
	return w.endAction(start)
}

// property writes a property. Its length does not count the padding.
func (w *writer) property(kind uint16, body func()) {
	start := w.beginAction(kind)
	body()
	w.set16(start+2, w.len()-start)
	w.pad(start)
}

func (w *writer) outputReg(a flow.OutputReg, v Version) error {
	start := w.nxAction(nxOutputReg)
	w.u16(bitsOf(a.Src))
	err := w.moveHeader(a.Src.Field, v)
	w.u16(0xffff) // max_len: all bytes, if the port is the controller's
	return firstError(err, w.endAction(start))
}

// firstError is the first error of two.
func firstError(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

func (w *writer) resubmit(a flow.Resubmit) error {
	subtype := uint16(nxResubmitTable)
	switch {
	case a.CT:
		subtype = nxResubmitCT
	case a.Table == flow.CurrentTable:
		subtype = nxResubmit
	}
	start := w.nxAction(subtype)
	w.u16(uint16(a.InPort))
	w.u8(a.Table)
	return w.endAction(start)
}

// move writes a move: copy_field in OpenFlow 1.5.
func (w *writer) move(a flow.Move, v Version) error {
	var start int
	if v >= V15 {
		start = w.beginAction(actCopyField)
	} else {
		start = w.nxAction(nxMove)
	}
	w.u16(uint16(a.Src.N))
	w.u16(uint16(a.Src.Ofs))
	w.u16(uint16(a.Dst.Ofs))
	if v >= V15 {
		w.u16(0)
	}
	err := firstError(w.moveHeader(a.Src.Field, v), w.moveHeader(a.Dst.Field, v))
	return firstError(err, w.endAction(start))
}

func (w *writer) pushVLAN(a flow.PushVLAN, v Version) error {
	if v == V10 {
		return nil // set_vlan_vid adds the tag
	}
	start := w.beginAction(actPushVLAN)
	w.u16(a.EtherType)
	return w.endAction(start)
}

func (w *writer) group(id uint32, v Version) error {
	var start int
	if v == V10 {
		start = w.nxAction(nxGroup)
		w.u16(0)
	} else {
		start = w.beginAction(actGroup)
	}
	w.u32(id)
	return w.endAction(start)
}

// meter writes the action of OpenFlow 1.5. An earlier version has an instruction instead, and 1.0
// has none.
func (w *writer) meter(id uint32, v Version) error {
	if v < V15 {
		return nil
	}
	start := w.beginAction(actMeter)
	w.u32(id)
	return w.endAction(start)
}

// setLoad writes a load, as a set_field where Open vSwitch does so. A field whose bits do not fill
// its bytes keeps its mask.
func (w *writer) setLoad(a flow.Load, v Version) error {
	f := flow.FieldByID(a.Dst.Field)
	mask, masked := a.Dst.Mask(), true
	if a.Dst == f.Full() {
		mask, masked = flow.Ones(f.Bits), f.Bits%8 != 0
	}
	value := a.Value.Shl(int(a.Dst.Ofs)).And(mask)
	if (v == V13 || v == V14) && !flow.IsTunMetadata(f.ID) { // Open vSwitch keeps a load in these versions
		return w.loads(f.ID, value, mask, v)
	}
	return w.set(f.ID, value, mask, masked, v)
}

// set writes the action that sets the bits of mask in a field. If masked is set, it writes the mask,
// too.
func (w *writer) set(id flow.FieldID, value, mask flow.Value, masked bool, v Version) error {
	if mask.IsZero() {
		return nil
	}
	option, start := flow.IsTunMetadata(id), 0
	switch {
	case option && (v == V10 || masked && v < V15):
		start = w.nxAction(nxLoad2) // a load does not carry the length of a field
	case v == V10 && !masked:
		return w.set10(id, value)
	case masked && v < V15:
		return w.loads(id, value, mask, v)
	default:
		start = w.beginAction(actSetField)
	}
	h := headersOf[id].in(v)
	if id == flow.InPort {
		h = headersOf[id].nxm
	}
	if option {
		h = tlvHeader(id, value, mask)
	}
	if id == flow.VlanVID {
		value.Lo |= packet.VLANPresent
		mask.Lo |= packet.VLANPresent
	}
	if h.size == 0 {
		return fail(BadActionSetType, "%s has no header", flow.FieldByID(id).Name)
	}
	value = value.And(flow.Ones(8 * int(h.size)))
	if masked {
		w.oxm(h, value, &mask)
	} else {
		w.oxm(h, value, nil)
	}
	return w.endAction(start)
}

// sets10 are the actions of OpenFlow 1.0 that set a field: type, and size of the value in bytes.
var sets10 = map[flow.FieldID]struct {
	kind uint16
	size int
}{
	flow.VlanVID: {actVLANVID10, 2}, flow.VlanPCP: {actVLANPCP10, 1}, flow.EthSrc: {actEthSrc10, 6}, flow.EthDst: {actEthDst10, 6},
	flow.IPSrc: {actIPSrc10, 4}, flow.IPDst: {actIPDst10, 4}, flow.IPTOS: {actTOS10, 1},
	flow.TCPSrc: {actTpSrc10, 2}, flow.TCPDst: {actTpDst10, 2}, flow.UDPSrc: {actTpSrc10, 2}, flow.UDPDst: {actTpDst10, 2},
}

// set10 writes the action that sets a whole field in OpenFlow 1.0.
func (w *writer) set10(id flow.FieldID, value flow.Value) error {
	switch {
	case id == flow.IPDSCP:
		id, value.Lo = flow.IPTOS, value.Lo<<2
	case id == flow.VlanTCI && value.Lo&packet.VLANPresent == 0:
		return w.action(flow.PopVLAN{}, V10)
	case id == flow.VlanTCI:
		err := w.set10(flow.VlanVID, flow.Value{Lo: value.Lo & 0xfff})
		return firstError(err, w.set10(flow.VlanPCP, flow.Value{Lo: value.Lo >> 13}))
	}
	s, ok := sets10[id]
	if !ok {
		return w.loads(id, value, flow.Ones(flow.FieldByID(id).Bits), V10)
	}
	start := w.beginAction(s.kind)
	w.value(value, s.size)
	return w.endAction(start)
}

// mostLoaded is the largest number of bits of a load.
const mostLoaded = 64

// loads writes a load for each run of bits in the mask, the lowest first.
func (w *writer) loads(id flow.FieldID, value, mask flow.Value, v Version) error {
	width := int(flow.FieldByID(id).Full().N)
	for ofs := 0; ofs < width; {
		if mask.Shr(ofs).Lo&1 == 0 {
			ofs++
			continue
		}
		n := 1
		for n < mostLoaded && ofs+n < width && mask.Shr(ofs+n).Lo&1 != 0 {
			n++
		}
		start := w.nxAction(nxLoad)
		w.u16(bitsOf(flow.Subfield{Ofs: uint8(ofs), N: uint8(n)}))
		err := w.moveHeader(id, v)
		w.u64(value.Shr(ofs).And(flow.Ones(n)).Lo)
		if err = firstError(err, w.endAction(start)); err != nil {
			return err
		}
		ofs += n
	}
	return nil
}
