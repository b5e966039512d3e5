package openflow

import (
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
)

// The match of OpenFlow 1.0 has 40 bytes and twelve fields (OpenFlow 1.0.1, section 5.2.3).

// Bits of the wildcards.
const (
	anyInPort  = 1 << 0
	anyVLAN    = 1 << 1
	anyEthSrc  = 1 << 2
	anyEthDst  = 1 << 3
	anyEthType = 1 << 4
	anyProto   = 1 << 5
	anyTpSrc   = 1 << 6
	anyTpDst   = 1 << 7
	srcShift   = 8
	dstShift   = 14
	anyPCP     = 1 << 20
	anyTOS     = 1 << 21
	anyAll     = 1<<22 - 1

	noVLAN = 0xffff
)

// match10 is the fields of an OpenFlow 1.0 match as they are sent.
type match10 struct {
	wildcards    uint32
	inPort       uint16
	src, dst     flow.Value
	vlan         uint16
	pcp          uint8
	etherType    uint16
	tos, proto   uint8
	nwSrc, nwDst uint32
	tpSrc, tpDst uint16
}

func (r *reader) fields10() (m match10) {
	m.wildcards, m.inPort = r.u32(), r.u16()
	m.src, m.dst = r.value(6), r.value(6)
	m.vlan, m.pcp = r.u16(), r.u8()
	r.skip(1)
	m.etherType, m.tos, m.proto = r.u16(), r.u8(), r.u8()
	r.skip(2)
	m.nwSrc, m.nwDst = r.u32(), r.u32()
	m.tpSrc, m.tpDst = r.u16(), r.u16()
	return m
}

// match10 takes a match. It leaves out fields that the protocol does not have, as OpenFlow 1.0
// requires.
func (r *reader) match10() (m flow.Match) {
	t := r.fields10()
	is := func(any uint32) bool { return t.wildcards&any == 0 }
	add := func(any uint32, id flow.FieldID, v uint64) {
		if is(any) && m.Implies(flow.FieldByID(id).Need) {
			m.AddExact(id, flow.Value{Lo: v})
		}
	}
	add(anyInPort, flow.InPort, uint64(flow.PortOf16(uint32(t.inPort))))
	add(anyEthSrc, flow.EthSrc, t.src.Lo)
	add(anyEthDst, flow.EthDst, t.dst.Lo)
	t.addVLAN(&m)
	add(anyEthType, flow.EthType, uint64(t.etherType))
	arp := m.Implies(flow.NeedARP)
	if arp {
		add(anyProto, flow.ArpOp, uint64(t.proto))
	} else {
		add(anyProto, flow.IPProto, uint64(t.proto))
		add(anyTOS, flow.IPDSCP, uint64(t.tos>>2))
	}
	t.addAddress(&m, arp, srcShift, t.nwSrc, flow.IPSrc, flow.ArpSPA)
	t.addAddress(&m, arp, dstShift, t.nwDst, flow.IPDst, flow.ArpTPA)
	for _, p := range transports {
		add(anyTpSrc, p.src, uint64(t.tpSrc))
		add(anyTpDst, p.dst, uint64(t.tpDst))
	}
	return m
}

// transports are the fields of tp_src and tp_dst, by protocol.
var transports = []struct{ src, dst flow.FieldID }{
	{flow.TCPSrc, flow.TCPDst}, {flow.UDPSrc, flow.UDPDst}, {flow.SCTPSrc, flow.SCTPDst},
	{flow.ICMPType, flow.ICMPCode}, {flow.ICMPv6Type, flow.ICMPv6Code},
}

func (t *match10) addVLAN(m *flow.Match) {
	vlan, pcp := t.wildcards&anyVLAN == 0, t.wildcards&anyPCP == 0
	var tci, mask uint64
	switch {
	case vlan && t.vlan == noVLAN:
		mask = vidAndPresent
	default:
		if vlan {
			tci, mask = uint64(t.vlan&0xfff)|packet.VLANPresent, vidAndPresent
		}
		if pcp {
			tci |= uint64(t.pcp&7)<<13 | packet.VLANPresent
			mask |= pcpBits | packet.VLANPresent
		}
	}
	m.Add(flow.VlanTCI, flow.Value{Lo: tci}, flow.Value{Lo: mask})
}

// addAddress adds an address. The wildcards have the number of its low bits that match anything.
func (t *match10) addAddress(m *flow.Match, arp bool, shift int, v uint32, ip, spa flow.FieldID) {
	anyBits := min(int(t.wildcards>>shift&0x3f), 32)
	id := ip
	if arp {
		id = spa
	}
	if m.Implies(flow.FieldByID(id).Need) {
		m.Add(id, flow.Value{Lo: uint64(v)}, flow.Ones(32-anyBits).Shl(anyBits))
	}
}

// match10 writes the fields of a match that OpenFlow 1.0 has.
func (w *writer) match10(m *flow.Match) {
	t := match10{wildcards: anyAll}
	get := func(any uint32, id flow.FieldID) uint64 {
		f := flow.FieldByID(id)
		v, mask := m.Get(id)
		if mask != flow.Ones(f.Bits) || !m.Implies(f.Need) {
			return 0
		}
		t.wildcards &^= any
		return v.Lo
	}
	t.inPort = uint16(get(anyInPort, flow.InPort))
	t.src.Lo, t.dst.Lo = get(anyEthSrc, flow.EthSrc), get(anyEthDst, flow.EthDst)
	t.etherType = uint16(get(anyEthType, flow.EthType))
	t.proto = uint8(get(anyProto, flow.IPProto) | get(anyProto, flow.ArpOp))
	t.tos = uint8(get(anyTOS, flow.IPDSCP) << 2)
	for _, p := range transports {
		t.tpSrc |= uint16(get(anyTpSrc, p.src))
		t.tpDst |= uint16(get(anyTpDst, p.dst))
	}
	t.setVLAN(m)
	t.setAddresses(m)
	w.fields10(&t)
}

func (t *match10) setVLAN(m *flow.Match) {
	tci, mask := m.Get(flow.VlanTCI)
	if mask.Lo&vidAndPresent == vidAndPresent {
		t.wildcards &^= anyVLAN
		t.vlan = noVLAN
		if tci.Lo&packet.VLANPresent != 0 {
			t.vlan = uint16(tci.Lo & 0xfff)
		}
	}
	if mask.Lo&pcpBits == pcpBits && tci.Lo&packet.VLANPresent != 0 {
		t.wildcards &^= anyPCP
		t.pcp = uint8(tci.Lo >> 13)
	}
}

func (t *match10) setAddresses(m *flow.Match) {
	src, dst := flow.IPSrc, flow.IPDst
	if m.Implies(flow.NeedARP) {
		src, dst = flow.ArpSPA, flow.ArpTPA
	}
	set := func(id flow.FieldID, shift int) uint32 {
		v, mask := m.Get(id)
		if !m.Implies(flow.FieldByID(id).Need) {
			return 0
		}
		for n := range 32 {
			if mask == flow.Ones(32-n).Shl(n) {
				t.wildcards = t.wildcards&^(0x3f<<shift) | uint32(n)<<shift
			}
		}
		return uint32(v.Lo)
	}
	t.nwSrc, t.nwDst = set(src, srcShift), set(dst, dstShift)
}

func (w *writer) fields10(t *match10) {
	w.u32(t.wildcards)
	w.u16(t.inPort)
	w.value(t.src, 6)
	w.value(t.dst, 6)
	w.u16(t.vlan)
	w.u8(t.pcp)
	w.u8(0)
	w.u16(t.etherType)
	w.u8(t.tos)
	w.u8(t.proto)
	w.u16(0)
	w.u32(t.nwSrc)
	w.u32(t.nwDst)
	w.u16(t.tpSrc)
	w.u16(t.tpDst)
}
