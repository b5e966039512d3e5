package openflow

import "github.com/antrail/antrail/flow"

// The TLV table of Nicira's extension maps options of Geneve to the fields tun_metadata0 to
// tun_metadata63.

// TLVTableRequest is NXT_TLV_TABLE_REQUEST.
type TLVTableRequest struct{}

// TLVMapping is an option of Geneve, and the number of its field. Size is in bytes.
type TLVMapping struct {
	Class uint16
	Type  uint8
	Size  uint8
	Index uint16
}

// TLVTable is NXT_TLV_TABLE_REPLY.
type TLVTable struct{ Mappings []TLVMapping }

// TLVCommand is the command of a TLVTableMod.
type TLVCommand uint16

// The commands. TLVDelete names its mappings by their index.
const (
	TLVAdd TLVCommand = iota
	TLVDelete
	TLVClear
)

// TLVTableMod is NXT_TLV_TABLE_MOD.
type TLVTableMod struct {
	Command  TLVCommand
	Mappings []TLVMapping
}

// The capacity of a TLV table is TLVSpace bytes in TLVFields fields. MaxTLVOption is the size of the
// largest option in bytes. Open vSwitch has 256 bytes in 64 fields (TLVNumbers), and options of up
// to 124 bytes.
const (
	TLVNumbers   = lastTLVField - firstTLVField + 1
	TLVSpace     = flow.TunMetadataFields * flow.MaxTunMetadata
	TLVFields    = flow.TunMetadataFields
	MaxTLVOption = flow.MaxTunMetadata
)

// Fields of options have the numbers from firstTLVField up to lastTLVField in Nicira's class. Their
// values may be shorter than the option. Then the upper bytes are zeros, and a mask leaves them out.
const (
	firstTLVField = 40
	lastTLVField  = 103
)

// isTLVField reports whether a header is that of tun_metadata0 to tun_metadata63.
func isTLVField(raw uint32) bool {
	no := raw >> 9 & 0x7f
	return raw>>16 == nxmNX && no >= firstTLVField && no <= lastTLVField
}

// wholeTLVField is the header of an option's field in fieldOf: that of the full size.
func wholeTLVField(raw uint32) uint32 { return raw&^0x1ff | flow.MaxTunMetadata }

// unknownField is the error for a header that no field has.
func unknownField(raw uint32, kind ErrorKind) error {
	if isTLVField(raw) {
		return fail(NoTLVField, "the field tun_metadata%d is not supported", raw>>9&0x7f-firstTLVField)
	}
	return fail(kind, "no field has the header %#x", raw)
}

// tlvField takes the value of an option's field, and its mask, of n bytes each.
func (r *reader) tlvField(o *oxm, n int) (err error) {
	o.header = wholeTLVField(o.header)
	if o.value, err = r.tlvValue(n); err == nil && o.masked {
		o.mask, err = r.tlvValue(n)
	}
	return err
}

// tlvValue takes a number of n bytes. The bytes beyond the largest option must be 0.
func (r *reader) tlvValue(n int) (v flow.Value, err error) {
	for _, c := range r.take(max(0, n-flow.MaxTunMetadata)) {
		if c != 0 {
			return v, fail(BadValue, "the value of an option has %d bytes, want %d at most", n, flow.MaxTunMetadata)
		}
	}
	return r.value(min(n, flow.MaxTunMetadata)), nil
}

// tlvField writes the field of an option in a match, and clears it in left.
func (w *writer) tlvField(m *flow.Match, id flow.FieldID, left *flow.Key) {
	bit := flow.Value{Lo: 1 << (id - flow.TunMetadata0)}
	has, asks := m.Get(flow.TunPresent)
	if has.And(asks).And(bit).IsZero() {
		return
	}
	f, all := flow.FieldByID(id), flow.Ones(8*flow.MaxTunMetadata)
	value, mask := m.Get(id)
	h := tlvHeader(id, value, mask)
	if mask == all {
		w.oxm(h, value, nil)
	} else {
		w.oxm(h, value, &mask)
	}
	f.Put(left, flow.Value{}, all)
	flow.FieldByID(flow.TunPresent).Put(left, flow.Value{}, bit)
}

// tlvHeader is the header of an option's field with a value and mask: that of 4 bytes if they fit.
func tlvHeader(id flow.FieldID, value, mask flow.Value) header {
	h := headersOf[id].nxm
	if value.Lo>>32 == 0 && (mask.Lo>>32 == 0 || mask == flow.Ones(8*flow.MaxTunMetadata)) {
		h.size = 4
	}
	return h
}

// tlvMappingSize is the size of a mapping in a message.
const tlvMappingSize = 8

// encode implements Body.
func (t *TLVTable) encode(w *writer, _ Version) error {
	w.u32(nicira)
	w.u32(nxtTLVReply)
	w.u32(TLVSpace)
	w.u16(TLVFields)
	w.zeros(10)
	for _, m := range t.Mappings {
		w.u16(m.Class)
		w.u8(m.Type)
		w.u8(m.Size)
		w.u16(m.Index)
		w.u16(0)
	}
	return nil
}

func decodeTLVTableMod(r *reader, _ Version) (Body, error) {
	m := &TLVTableMod{Command: TLVCommand(r.u16())}
	r.skip(6)
	if m.Command > TLVClear {
		return nil, fail(TLVBadCommand, "a TLV table has no command %d", m.Command)
	}
	if len(r.b)%tlvMappingSize != 0 {
		return nil, fail(BadLength, "mappings of %d bytes", len(r.b))
	}
	for len(r.b) > 0 {
		m.Mappings = append(m.Mappings, TLVMapping{Class: r.u16(), Type: r.u8(), Size: r.u8(), Index: r.u16()})
		r.skip(2)
	}
	return m, r.done()
}
