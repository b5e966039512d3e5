package openflow

// The TLV table of Nicira's extension gives options of Geneve numbers, under which entries have
// them as the fields tun_metadata0 to tun_metadata63.

// TLVTableRequest is NXT_TLV_TABLE_REQUEST.
type TLVTableRequest struct{}

// TLVMapping is an option of Geneve, and the number of the field that has it. Size is in bytes.
type TLVMapping struct {
	Class uint16
	Type  uint8
	Size  uint8
	Index uint16
}

// TLVTable is NXT_TLV_TABLE_REPLY.
type TLVTable struct{ Mappings []TLVMapping }

// TLVCommand is what a TLVTableMod does.
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

// Room for options in a TLV table: TLVSpace bytes in TLVFields fields. MaxTLVOption is the size of
// the largest option.
const (
	TLVSpace     = 256
	TLVFields    = 64
	MaxTLVOption = 124
)

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
