package openflow

import (
	"github.com/antrail/antrail/flow"
)

// Fields have a header of four bytes: a class, a number in it, whether a mask follows, and how
// many bytes do. OpenFlow's own class is OXM, Nicira's are NXM. The names are those of the
// registry (package flow); the numbers are here.

// Classes of fields.
const (
	nxmOF  = 0x0000
	nxmNX  = 0x0001
	oxmOF  = 0x8000
	oxmReg = 0x8001
)

// header is a field's class, its number, and the bytes of its value.
type header struct {
	class uint16
	no    uint8
	size  uint8
}

// u32 is the header as it is sent, without a mask.
func (h header) u32() uint32 { return uint32(h.class)<<16 | uint32(h.no)<<9 | uint32(h.size) }

// fieldHeaders are the headers of a field: that of NXM, and that of OXM. Size 0 is none.
type fieldHeaders struct{ nxm, oxm header }

// in is the header that a version prefers.
func (h *fieldHeaders) in(v Version) header {
	if v == V10 && h.nxm.size != 0 || h.oxm.size == 0 {
		return h.nxm
	}
	return h.oxm
}

// fieldRow is a field with its numbers: nx in class NXM_NX or of in NXM_OF, and oxm. -1 is none.
type fieldRow struct {
	id          flow.FieldID
	of, nx, oxm int
}

var fieldRows = []fieldRow{
	{flow.InPort, 0, -1, 0}, {flow.Metadata, -1, -1, 2},
	{flow.EthDst, 1, -1, 3}, {flow.EthSrc, 2, -1, 4}, {flow.EthType, 3, -1, 5},
	{flow.VlanTCI, 4, -1, -1}, {flow.VlanVID, -1, -1, 6}, {flow.VlanPCP, -1, -1, 7},
	{flow.IPTOS, 5, -1, -1}, {flow.IPDSCP, -1, -1, 8}, {flow.IPECN, -1, 28, 9},
	{flow.IPProto, 6, -1, 10}, {flow.IPSrc, 7, -1, 11}, {flow.IPDst, 8, -1, 12},
	{flow.TCPSrc, 9, -1, 13}, {flow.TCPDst, 10, -1, 14}, {flow.UDPSrc, 11, -1, 15}, {flow.UDPDst, 12, -1, 16},
	{flow.SCTPSrc, -1, -1, 17}, {flow.SCTPDst, -1, -1, 18},
	{flow.ICMPType, 13, -1, 19}, {flow.ICMPCode, 14, -1, 20},
	{flow.ArpOp, 15, -1, 21}, {flow.ArpSPA, 16, -1, 22}, {flow.ArpTPA, 17, -1, 23},
	{flow.ArpSHA, -1, 17, 24}, {flow.ArpTHA, -1, 18, 25},
	{flow.IPv6Src, -1, 19, 26}, {flow.IPv6Dst, -1, 20, 27}, {flow.IPv6Label, -1, 27, 28},
	{flow.ICMPv6Type, -1, 21, 29}, {flow.ICMPv6Code, -1, 22, 30},
	{flow.NDTarget, -1, 23, 31}, {flow.NDSLL, -1, 24, 32}, {flow.NDTLL, -1, 25, 33},
	{flow.IPFrag, -1, 26, -1}, {flow.IPTTL, -1, 29, -1}, {flow.TCPFlags, -1, 34, -1},
	{flow.TunID, -1, 16, 38}, {flow.TunSrc, -1, 31, -1}, {flow.TunDst, -1, 32, -1},
	{flow.TunIPv6Src, -1, 109, -1}, {flow.TunIPv6Dst, -1, 110, -1}, {flow.TunFlags, -1, 104, -1},
	{flow.PktMark, -1, 33, -1}, {flow.ConjID, -1, 37, -1},
	{flow.CTState, -1, 105, -1}, {flow.CTZone, -1, 106, -1}, {flow.CTMark, -1, 107, -1}, {flow.CTLabel, -1, 108, -1},
	{flow.CTNwProto, -1, 119, -1}, {flow.CTNwSrc, -1, 120, -1}, {flow.CTNwDst, -1, 121, -1},
	{flow.CTIPv6Src, -1, 122, -1}, {flow.CTIPv6Dst, -1, 123, -1}, {flow.CTTpSrc, -1, 124, -1}, {flow.CTTpDst, -1, 125, -1},
}

// tcpFlagsOXM is tcp_flags in OpenFlow 1.5. In 1.3 it is ONF's field of the same number. This package
// sends NXM's in all versions.
var tcpFlagsOXM = header{oxmOF, onfTCPFlags, 2}

const onfTCPFlags = 42

var (
	headersOf = makeHeaders()
	fieldOf   = makeFieldsByHeader()
)

func makeHeaders() (t [flow.NumFields]fieldHeaders) {
	for _, r := range fieldRows {
		size := uint8((flow.FieldByID(r.id).Bits + 7) / 8)
		h := &t[r.id]
		switch {
		case r.of >= 0:
			h.nxm = header{nxmOF, uint8(r.of), sizeIn(r.id, nxmOF, size)}
		case r.nx >= 0:
			h.nxm = header{nxmNX, uint8(r.nx), sizeIn(r.id, nxmNX, size)}
		}
		if r.oxm >= 0 {
			h.oxm = header{oxmOF, uint8(r.oxm), sizeIn(r.id, oxmOF, size)}
		}
	}
	for i := range flow.FieldID(16) {
		t[flow.Reg0+i].nxm = header{nxmNX, uint8(i), 4}
	}
	for i := range flow.FieldID(8) {
		t[flow.XReg0+i].oxm = header{oxmReg, uint8(i), 8}
	}
	for i := range flow.FieldID(4) {
		t[flow.XXReg0+i].nxm = header{nxmNX, uint8(111 + i), 16}
	}
	for i := range flow.FieldID(flow.TunMetadataFields) {
		t[flow.TunMetadata0+i].nxm = header{nxmNX, uint8(firstTLVField + i), flow.MaxTunMetadata}
	}
	return t
}

// sizeIn is the size of a field's value in bytes: size, except for a few fields.
func sizeIn(id flow.FieldID, class uint16, size uint8) uint8 {
	switch {
	case id == flow.InPort && class == nxmOF, id == flow.TunFlags:
		return 2
	case id == flow.IPv6Label:
		return 4
	}
	return size
}

func makeFieldsByHeader() map[uint32]flow.FieldID {
	m := map[uint32]flow.FieldID{tcpFlagsOXM.u32(): flow.TCPFlags}
	for id := range flow.NumFields {
		for _, h := range []header{headersOf[id].nxm, headersOf[id].oxm} {
			if h.size != 0 {
				m[h.u32()] = id
			}
		}
	}
	return m
}

// oxm is a field in a match or a set_field: a value, and a mask of as many bytes.
type oxm struct {
	header uint32 // without the mask bit, and with the length of the value
	masked bool
	value  flow.Value
	mask   flow.Value // as it is written; zero if masked is not set
}

// largestField is the most bytes of a value.
const largestField = 16

// oxm takes a field from a message.
func (r *reader) oxm() (o oxm, err error) {
	raw := r.u32()
	n := int(raw & 0xff)
	o.masked = raw&0x100 != 0
	if raw>>16 == experimenterKind {
		if vendor := r.u32(); raw&^0x1ff != experimenterKind<<16|onfTCPFlags<<9 || vendor != onf || n < 4 {
			return o, fail(BadField, "field %#x of experimenter %#x is not supported", raw, vendor)
		}
		n -= 4
		raw = tcpFlagsOXM.u32()&^0xff | raw&0x100 | uint32(n)
	}
	if o.masked {
		if n%2 != 0 {
			return o, fail(BadMatchLength, "field %#x has a mask and an odd length", raw)
		}
		n /= 2
	}
	option := isTLVField(raw)
	o.header = raw&^0x1ff | uint32(n)
	if n == 0 && !option || n > largestField && !option || len(r.b) < int(raw&0xff) {
		return o, fail(BadMatchLength, "field %#x has %d bytes, %d are left", raw, n, len(r.b))
	}
	if option {
		return o, r.tlvField(&o, n)
	}
	o.value = r.value(n)
	if o.masked {
		o.mask = r.value(n)
	}
	return o, nil
}

// value takes a number of up to 16 bytes.
func (r *reader) value(n int) (v flow.Value) {
	for _, c := range r.take(n) {
		v = v.Shl(8)
		v.Lo |= uint64(c)
	}
	return v
}

// value writes a number in n bytes.
func (w *writer) value(v flow.Value, n int) {
	for i := n - 1; i >= 0; i-- {
		w.u8(byte(v.Shr(8 * i).Lo))
	}
}

// oxm writes a field with its value, and its mask if it is masked.
func (w *writer) oxm(h header, v flow.Value, mask *flow.Value) {
	if mask == nil {
		w.u32(h.u32())
		w.value(v, int(h.size))
		return
	}
	w.u32(uint32(h.class)<<16 | uint32(h.no)<<9 | 0x100 | uint32(h.size)*2)
	w.value(v, int(h.size))
	w.value(*mask, int(h.size))
}

// fieldHeader writes the header of a field.
func (w *writer) fieldHeader(id flow.FieldID, v Version) error {
	h := headersOf[id].in(v)
	if h.size == 0 {
		return fail(BadField, "%s has no header in %s", flow.FieldByID(id).Name, v)
	}
	w.u32(h.u32())
	return nil
}

// moveHeader is fieldHeader for actions that name bits of a field: in_port has 16 there, as in
// flow.Field.Full.
func (w *writer) moveHeader(id flow.FieldID, v Version) error {
	if id == flow.InPort {
		v = V10
	}
	return w.fieldHeader(id, v)
}

// field takes the header of a field in an action. It has no mask, but like Open vSwitch it may have
// the mask bit and a doubled length.
func (r *reader) field() (flow.FieldID, error) {
	raw := r.u32()
	header := raw
	if raw&0x101 == 0x100 {
		header = raw&^0x1ff | raw&0xff/2
	}
	if isTLVField(raw) {
		header = wholeTLVField(raw)
	}
	id, ok := fieldOf[header]
	if !ok {
		return 0, unknownField(raw, BadActionSetType)
	}
	return id, nil
}

// subfieldOf is n bits of a field from bit ofs up.
func subfieldOf(id flow.FieldID, ofs, n int) (flow.Subfield, error) {
	if bits := int(flow.FieldByID(id).Full().N); n == 0 || ofs+n > bits {
		return flow.Subfield{}, fail(BadActionArgument, "bits %d to %d of %s, which has %d", ofs, ofs+n-1, flow.FieldByID(id).Name, bits)
	}
	return flow.Subfield{Field: id, Ofs: uint8(ofs), N: uint8(n)}, nil
}
