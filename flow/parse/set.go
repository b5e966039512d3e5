package parse

import (
	"cmp"
	"strings"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
)

// The actions that write fields: set_field, load, move and their OpenFlow 1.0
// forms.

// arrow cuts VALUE->FIELD at its last arrow.
func arrow(it item) (value, field span, err error) {
	s := it.value
	if it.sep == '(' { // load(V->F) is valid too
		s = s.trim()
	}
	i := strings.LastIndex(s.text, "->")
	if it.sep == 0 || i < 0 {
		return s, s, it.key.errorf("expected %s:VALUE->FIELD", it.key.text)
	}
	return s.upTo(i).trim(), s.from(i + 2).trim(), nil
}

// subfield reads NXM_NX_REG0[0..3], reg0[5], reg0[] or reg0.
func subfield(s span) (flow.Subfield, error) {
	name, bits, hasBits := s.cut("[")
	f := flow.FieldByName(aliasOf(name.text))
	if f == nil || f.NXM == "" {
		return flow.Subfield{}, name.errorf("unknown field %q%s", name.text, flow.Suggest(name.text, flow.FieldNames()))
	}
	full := f.Full()
	if !hasBits {
		return full, nil
	}
	bits, rest, closed := bits.cut("]")
	if !closed || rest.text != "" {
		return flow.Subfield{}, bits.errorf("expected %s[], %s[BIT] or %s[FIRST..LAST]", name.text, name.text, name.text)
	}
	if bits.text == "" {
		return full, nil
	}
	firstText, lastText, isRange := bits.cut("..")
	if !isRange {
		lastText = firstText
	}
	first, err := number(firstText, full.N-1)
	if err != nil {
		return flow.Subfield{}, err
	}
	last, err := number(lastText, full.N-1)
	if err == nil && last < first {
		err = lastText.errorf("bit %d comes before bit %d; write the lower one first", last, first)
	}
	return flow.Subfield{Field: f.ID, Ofs: first, N: last - first + 1}, err
}

// aliasOf spells out the names of TCP's ports outside a match.
func aliasOf(name string) string {
	switch name {
	case "tp_src":
		return "tcp_src"
	case "tp_dst":
		return "tcp_dst"
	}
	return name
}

// writable finds the field that an action writes.
func writable(s span) (*flow.Field, error) {
	f := flow.FieldByName(aliasOf(s.text))
	switch {
	case f == nil || f.ReadOnly && f.NXM == "":
		return nil, s.errorf("unknown field %q%s", s.text, flow.Suggest(s.text, flow.FieldNames()))
	case f.ReadOnly:
		return nil, s.errorf("%s is read-only", s.text)
	}
	return f, nil
}

func (l *actionList) setField(it item) (flow.Action, error) {
	value, name, err := arrow(it)
	if err != nil {
		return nil, err
	}
	f, err := writable(name)
	if err != nil {
		return nil, err
	}
	if f.ID == flow.VlanVID {
		return setVlanVID(value)
	}
	v, mask, err := l.p.value(f, value)
	if err != nil {
		return nil, err
	}
	if !v.AndNot(mask).IsZero() {
		return nil, value.errorf("%s has bits outside its mask", value.text)
	}
	if strings.Contains(value.text, "/") && !f.Maskable {
		// OVS prints a load of all bits in this form; see appendLoad.
		return flow.Load{Dst: f.Full(), Value: v}, nil
	}
	return flow.SetField{Field: f.ID, Value: v, Mask: mask}, writableValue(value, f, v)
}

// writableValue refuses values that Open vSwitch never writes into a field,
// although its bits would hold them.
func writableValue(s span, f *flow.Field, v flow.Value) error {
	switch {
	case f.ID == flow.IPTOS && v.Lo&3 != 0:
		return s.errorf("nw_tos is the upper 6 bits of the TOS byte; the lower 2 must be 0")
	case f.ID == flow.ArpOp && v.Lo > 255:
		return s.errorf("%d is too large for arp_op; the largest is 255", v.Lo)
	}
	return nil
}

// setVlanVID reads the value of vlan_vid, which must have the bit for a present
// tag, 0x1000 (OpenFlow 1.3, 7.2.3.7). Entries hold the 12 bits.
func setVlanVID(s span) (flow.Action, error) {
	text, maskText, hasMask := s.cut("/")
	v, err := number[uint64](text, 0x1fff)
	if err != nil {
		return nil, err
	}
	mask := uint64(0x1fff)
	if hasMask {
		if mask, err = number[uint64](maskText, 0x1fff); err != nil {
			return nil, err
		}
	}
	if v&mask&packet.VLANPresent == 0 {
		return nil, s.errorf("the value of vlan_vid is 4096 (0x1000, tagged) plus the VLAN; %s lacks it", s.text)
	}
	if v&^mask != 0 {
		return nil, s.errorf("%s has bits outside its mask", s.text)
	}
	return flow.SetField{Field: flow.VlanVID, Value: flow.Value{Lo: v & 0xfff}, Mask: flow.Value{Lo: mask & 0xfff}}, nil
}

func (l *actionList) load(it item) (flow.Action, error) {
	value, name, err := arrow(it)
	if err != nil {
		return nil, err
	}
	dst, err := writableSubfield(name)
	if err != nil {
		return nil, err
	}
	if dst.Field == flow.VlanVID {
		return nil, name.errorf("vlan_vid cannot be loaded; write set_field:VALUE->vlan_vid")
	}
	v, err := fitting(value, dst)
	if err == nil {
		err = writableValue(value, flow.FieldByID(dst.Field), v.Shl(int(dst.Ofs)))
	}
	if dst == flow.FieldByID(flow.InPort).Full() {
		v.Lo = uint64(flow.PortOf16(uint32(v.Lo)))
	}
	return flow.Load{Dst: dst, Value: v}, err
}

func writableSubfield(s span) (flow.Subfield, error) {
	dst, err := subfield(s)
	if err == nil && flow.FieldByID(dst.Field).ReadOnly {
		err = s.errorf("%s is read-only", flow.FieldByID(dst.Field).Name)
	}
	return dst, err
}

// fitting reads a number that a subfield can hold.
func fitting(s span, dst flow.Subfield) (flow.Value, error) {
	v, err := wideNumber(s)
	if err == nil && v.And(flow.Ones(int(dst.N))) != v {
		err = s.errorf("%s does not fit into %d bits", s.text, dst.N)
	}
	return v, err
}

func (l *actionList) move(it item) (flow.Action, error) {
	srcText, dstText, err := arrow(it)
	if err != nil {
		return nil, err
	}
	src, err := subfield(srcText)
	if err != nil {
		return nil, err
	}
	dst, err := writableSubfield(dstText)
	if err != nil {
		return nil, err
	}
	return flow.Move{Src: src, Dst: dst}, sameWidth(srcText, src, dst)
}

// sameWidth returns an error unless both subfields have the same width.
func sameWidth(s span, src, dst flow.Subfield) error {
	if src.N != dst.N {
		return s.errorf("the source has %d bits, the destination %d", src.N, dst.N)
	}
	return nil
}

func (l *actionList) pushVLAN(it item) (flow.Action, error) {
	v, err := number[uint16](it.value, 0xffff)
	if err == nil && v != 0x8100 && v != 0x88a8 {
		err = it.value.errorf("push_vlan needs 0x8100 or 0x88a8")
	}
	return flow.PushVLAN{EtherType: v}, err
}

// modTOS reads mod_nw_tos:N, where N is the DSCP in its place in the byte.
func (l *actionList) modTOS(it item) (flow.Action, error) {
	v, err := number[uint64](it.value, 255)
	if err == nil && v&3 != 0 {
		err = it.value.errorf("mod_nw_tos writes the upper 6 bits; the lower 2 must be 0")
	}
	return flow.SetField{Field: flow.IPDSCP, Value: flow.Value{Lo: v >> 2}, Mask: flow.Ones(6)}, err
}

// modPort reads mod_tp_src and mod_tp_dst, whose field depends on the match.
func (l *actionList) modPort(it item) (flow.Action, error) {
	b := matchBuilder{m: cmp.Or(l.p.match, &flow.Match{})}
	name := b.portName(it.key.text[len("mod_tp_"):])
	if strings.HasPrefix(name, "icmp") {
		return nil, it.key.errorf("%s needs tcp, udp or sctp in the match", it.key.text)
	}
	return l.setWhole(flow.FieldByName(name).ID, it.value)
}

// modVLAN reads mod_vlan_vid:N, which adds a tag to a packet without one.
func (l *actionList) modVLAN(it item) (flow.Action, error) {
	v, err := number[uint64](it.value, 0xfff)
	if err == nil {
		l.tag(it)
	}
	return flow.SetField{Field: flow.VlanVID, Value: flow.Value{Lo: v}, Mask: flow.Ones(12)}, err
}

// modVLANPCP reads mod_vlan_pcp:N, likewise.
func (l *actionList) modVLANPCP(it item) (flow.Action, error) {
	v, err := number[uint64](it.value, 7)
	if err == nil {
		l.tag(it)
	}
	return flow.SetField{Field: flow.VlanPCP, Value: flow.Value{Lo: v}, Mask: flow.Ones(3)}, err
}

func (l *actionList) tag(it item) {
	if l.tags == 0 {
		l.add(it, flow.PushVLAN{EtherType: 0x8100})
	}
}
