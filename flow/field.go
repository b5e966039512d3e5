package flow

// The registry of fields has one row for each field that a flow entry can match on, set or move.
// A row has its place in a Key, its width, its spelling, and its prerequisites. Parser, printer,
// matcher, set_field and trace all read the same row. None of them knows a field by itself.
//
// Rows are in registry.go, kinds of text in form.go, prerequisites in prereq.go. A test
// (registry_test.go) checks every byte of the Key. It fails if a byte belongs to no row, or to
// two that are not a declared union.

import (
	"encoding/binary"
	"maps"
	"slices"
)

// FieldID names a field of the registry.
type FieldID uint8

// The fields. Reg0+i is register i; XReg0+i and XXReg0+i are its 64-bit and
// 128-bit unions. TunMetadata0+i is the option of Geneve with number i.
const (
	FieldNone FieldID = iota
	Reg0
	_reg1
	_reg2
	_reg3
	_reg4
	_reg5
	_reg6
	_reg7
	_reg8
	_reg9
	_reg10
	_reg11
	_reg12
	_reg13
	_reg14
	_reg15
	XReg0
	_xreg1
	_xreg2
	_xreg3
	_xreg4
	_xreg5
	_xreg6
	_xreg7
	XXReg0
	_xxreg1
	_xxreg2
	_xxreg3
	ConjID
	Metadata
	InPort
	PktMark
	CTState
	CTZone
	CTMark
	CTLabel
	CTNwProto
	CTNwSrc
	CTNwDst
	CTIPv6Src
	CTIPv6Dst
	CTTpSrc
	CTTpDst
	TunID
	TunSrc
	TunDst
	TunIPv6Src
	TunIPv6Dst
	TunFlags
	TunTTL
	TunTOS
	TunPresent // bit i is set if the packet has the option of TunMetadata0+i
	TunMetadata0
	_tunMetadata1
	_tunMetadata2
	_tunMetadata3
	_tunMetadata4
	_tunMetadata5
	_tunMetadata6
	_tunMetadata7
	EthSrc
	EthDst
	EthType
	VlanTCI
	VlanVID
	VlanPCP
	IPSrc
	IPDst
	IPv6Src
	IPv6Dst
	IPv6Label
	IPProto
	IPTOS  // the whole TOS byte; text nw_tos shows its DSCP bits
	IPDSCP // 6 bits
	IPECN
	IPTTL
	IPFrag
	ArpOp
	ArpSPA
	ArpTPA
	ArpSHA
	ArpTHA
	TCPSrc
	TCPDst
	TCPFlags
	UDPSrc
	UDPDst
	SCTPSrc
	SCTPDst
	ICMPType
	ICMPCode
	ICMPv6Type
	ICMPv6Code
	NDTarget
	NDSLL
	NDTLL
	NumFields // one more than the last
)

// Field is one row of the registry: everything about a field that parser, printer, matcher,
// set_field and trace need.
type Field struct {
	ID       FieldID
	Name     string // in set_field and modern matches: eth_dst, reg0, ip_dst
	Alias    string // another name that is read but not written: dl_dst; "" for none
	NXM      string // in move, load, learn and output: NXM_OF_ETH_DST; "" if OpenFlow has none
	OXM      string // another header name that is read; "" for none
	Off      int    // first byte in the Key
	Size     int    // bytes in the Key that hold it
	Lsb      int    // bits below it in those bytes (big endian)
	Bits     int    // width
	Form     Form   // how its values are written
	Maskable bool   // matches and set_field may give a mask
	ReadOnly bool   // no action may write it
	Need     Prereq // what a match must imply
}

// Get reads the field from a key.
func (f *Field) Get(k *Key) Value {
	if f.Size <= 8 {
		return Value{Lo: f.low(k)}
	}
	var v Value
	for _, b := range k[f.Off : f.Off+f.Size] {
		v = v.Shl(8)
		v.Lo |= uint64(b)
	}
	return v.Shr(f.Lsb).And(Ones(f.Bits))
}

// low is Get of a field that lies in up to eight bytes.
func (f *Field) low(k *Key) (lo uint64) {
	switch f.Size {
	case 1:
		lo = uint64(k[f.Off])
	case 2:
		lo = uint64(binary.BigEndian.Uint16(k[f.Off:]))
	case 4:
		lo = uint64(binary.BigEndian.Uint32(k[f.Off:]))
	case 8:
		lo = binary.BigEndian.Uint64(k[f.Off:])
	default:
		for _, b := range k[f.Off : f.Off+f.Size] {
			lo = lo<<8 | uint64(b)
		}
	}
	return lo >> f.Lsb & (1<<f.Bits - 1)
}

// fieldWords has, for each field, a bit for each word of a key in which the field lies.
var fieldWords = func() (all [NumFields]uint64) {
	for id := range all {
		f := &fields[id]
		first, last := f.Off/8, (f.Off+f.Size-1)/8
		all[id] = 1<<(last+1) - 1<<first
	}
	return all
}()

// Put writes v's bits under mask into a key. Other bits stay.
func (f *Field) Put(k *Key, v, mask Value) {
	if f.Size <= 8 {
		f.putLow(k, v.Lo, mask.Lo)
		return
	}
	mask = mask.And(Ones(f.Bits)).Shl(f.Lsb)
	v = v.Shl(f.Lsb).And(mask)
	for i := f.Off + f.Size - 1; i >= f.Off; i-- {
		k[i] = k[i]&^byte(mask.Lo) | byte(v.Lo)
		v, mask = v.Shr(8), mask.Shr(8)
	}
}

// putLow is Put of a field that lies in up to eight bytes.
func (f *Field) putLow(k *Key, v, mask uint64) {
	mask = mask & (1<<f.Bits - 1) << f.Lsb
	v = v << f.Lsb & mask
	switch b := k[f.Off : f.Off+f.Size]; f.Size {
	case 2:
		binary.BigEndian.PutUint16(b, binary.BigEndian.Uint16(b)&^uint16(mask)|uint16(v))
	case 4:
		binary.BigEndian.PutUint32(b, binary.BigEndian.Uint32(b)&^uint32(mask)|uint32(v))
	default:
		for i := len(b) - 1; i >= 0; i-- {
			b[i] = b[i]&^byte(mask) | byte(v)
			v, mask = v>>8, mask>>8
		}
	}
}

// Full is the whole field as move, load and learn see it. NXM_OF_IN_PORT has 16
// bits (OpenFlow 1.0), though in_port has 32 in a Key.
func (f *Field) Full() Subfield {
	if f.ID == InPort {
		return Subfield{Field: InPort, N: 16}
	}
	return Subfield{Field: f.ID, N: uint8(f.Bits)}
}

// FieldByID is the registry row of a field.
func FieldByID(id FieldID) *Field { return &fields[id] }

// FieldNames are all names of all fields, in no order.
func FieldNames() []string { return slices.Collect(maps.Keys(fieldNames)) }

// FieldByName finds a field by any of its names: eth_dst, dl_dst, NXM_OF_ETH_DST, OXM_OF_ETH_DST.
// It is nil for an unknown name.
func FieldByName(name string) *Field { return fieldNames[name] }

// Get reads a subfield from a key, right aligned.
func (s Subfield) Get(k *Key) Value {
	f := &fields[s.Field]
	if f.Size <= 8 {
		return Value{Lo: f.low(k) >> s.Ofs & (1<<s.N - 1)}
	}
	return f.Get(k).Shr(int(s.Ofs)).And(Ones(int(s.N)))
}

// Put writes the low bits of v into a subfield of a key.
func (s Subfield) Put(k *Key, v Value) {
	fields[s.Field].Put(k, v.Shl(int(s.Ofs)), s.Mask())
}

// Mask has the subfield's bits within its field.
func (s Subfield) Mask() Value { return Ones(int(s.N)).Shl(int(s.Ofs)) }
