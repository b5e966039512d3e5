package openflow

import (
	"github.com/antrail/antrail/flow"
)

// PacketOut is OFPT_PACKET_OUT.
type PacketOut struct {
	InPort  uint32 // or flow.PortController, flow.PortLocal
	Actions []flow.Action
	Frame   []byte
	// Fields are the fields in the match of OpenFlow 1.5, without in_port.
	Fields flow.Match
}

func decodePacketOut(r *reader, v Version) (Body, error) {
	p := &PacketOut{}
	buffer := r.u32()
	var n int
	switch v {
	case V10:
		p.InPort, n = port16(r), int(r.u16())
	case V15:
		n = int(r.u16())
		r.skip(2)
		var m flow.Match
		if err := r.match(&m); err != nil {
			return nil, err
		}
		p.setMatch(m)
	default:
		p.InPort, n = r.u32(), int(r.u16())
		r.skip(6)
	}
	switch {
	case n > len(r.b):
		return nil, fail(BadLength, "actions of %d bytes, of which %d are there", n, len(r.b))
	case buffer != noBuffer:
		return nil, fail(BufferUnknown, "buffer %#x: this switch does not buffer packets", buffer)
	case !mayEnter(p.InPort):
		return nil, fail(BadPort, "a packet cannot enter at port %#x", p.InPort)
	}
	a := actionReader{v: v, table: true}
	if err := a.read(r.take(n)); err != nil {
		return nil, err
	}
	p.Actions, p.Frame = a.list, r.rest()
	if err := flow.CheckActions(p.Actions); err != nil {
		return nil, checkActions(err)
	}
	return p, nil
}

// setMatch sets InPort and Fields by a match.
func (p *PacketOut) setMatch(m flow.Match) {
	port, mask := m.Get(flow.InPort)
	p.InPort = uint32(port.Lo)
	if mask.IsZero() {
		p.InPort = 0
	}
	flow.FieldByID(flow.InPort).Put(&m.Value, flow.Value{}, flow.Ones(32))
	flow.FieldByID(flow.InPort).Put(&m.Mask, flow.Value{}, flow.Ones(32))
	p.Fields = m
}

// mayEnter reports whether a packet-out may have an input port.
func mayEnter(port uint32) bool {
	switch port {
	case flow.PortController, flow.PortLocal, flow.PortNone:
		return true
	}
	return port != 0 && port <= flow.MaxPort
}

// PacketInFormat is a format of packet-ins.
type PacketInFormat uint32

// The formats, as NXT_SET_PACKET_IN_FORMAT numbers them. The standard one is that of the
// connection's version.
const (
	PacketInStandard PacketInFormat = 0
	PacketInNX       PacketInFormat = 1
	PacketInNX2      PacketInFormat = 2
)

// SetPacketInFormat is NXT_SET_PACKET_IN_FORMAT.
type SetPacketInFormat struct{ Format PacketInFormat }

// PacketIn is a packet for the controller.
type PacketIn struct {
	Format   PacketInFormat
	Table    uint8
	Cookie   uint64
	Reason   string
	Metadata flow.Match // in_port, and registers and other metadata fields that are not 0
	UserData []byte
	Length   int    // of the whole packet
	Frame    []byte // its first bytes
	Rests    []Rest // the actions behind a pause; only NXT_PACKET_IN2 has them
}

func (p *PacketIn) kind() uint8 {
	if p.Format == PacketInStandard {
		return typePacketIn
	}
	return typeExperimenter
}

// encode implements Body.
func (p *PacketIn) encode(w *writer, v Version) error {
	switch {
	case p.Format == PacketInNX2:
		return p.encodeNX2(w, v)
	case p.Format == PacketInNX:
		return p.encodeNX(w)
	case v == V10:
		return p.encode10(w)
	}
	w.u32(noBuffer)
	w.u16(uint16(p.Length))
	w.u8(p.reasonIn(v))
	w.u8(p.Table)
	w.u64(p.Cookie)
	err := w.match(&p.Metadata, v)
	w.u16(0)
	w.bytes(p.Frame)
	return err
}

// reasonIn is the reason's number, which before OpenFlow 1.4 is one of three.
func (p *PacketIn) reasonIn(v Version) uint8 { return PacketInReason(p.Reason, v) }

// PacketInReason is the number of a reason for a packet-in in a version.
func PacketInReason(reason string, v Version) uint8 {
	no := reasonNo(reason)
	if v < V14 && no > 2 {
		return 1
	}
	return no
}

func (p *PacketIn) encode10(w *writer) error {
	port, _ := p.Metadata.Get(flow.InPort)
	w.u32(noBuffer)
	w.u16(uint16(p.Length))
	w.u16(uint16(port.Lo))
	w.u8(p.reasonIn(V10))
	w.u8(0)
	w.bytes(p.Frame)
	return nil
}

func (p *PacketIn) encodeNX(w *writer) error {
	w.u32(nicira)
	w.u32(nxtPacketIn)
	w.u32(noBuffer)
	w.u16(uint16(p.Length))
	w.u8(p.reasonIn(V10))
	w.u8(p.Table)
	w.u64(p.Cookie)
	at := w.len()
	w.zeros(8)
	start := w.len()
	err := w.appendMatch(&p.Metadata, V10)
	w.set16(at, w.len()-start)
	w.pad(start)
	w.u16(0)
	w.bytes(p.Frame)
	return err
}

// Properties of NXT_PACKET_IN2.
const (
	pinPacket   = 0
	pinFullLen  = 1
	pinBuffer   = 2
	pinTable    = 3
	pinCookie   = 4
	pinReason   = 5
	pinMetadata = 6
	pinUserData = 7

	pinContinuation = 8
)

func (p *PacketIn) encodeNX2(w *writer, v Version) (err error) {
	w.u32(nicira)
	w.u32(nxtPacketIn2)
	w.property(pinPacket, func() { w.bytes(p.Frame) })
	if p.Length > len(p.Frame) {
		w.property(pinFullLen, func() { w.u32(uint32(p.Length)) })
	}
	w.property(pinTable, func() { w.u8(p.Table) })
	w.property(pinCookie, func() { w.zeros(4); w.u64(p.Cookie) })
	w.property(pinReason, func() { w.u8(reasonNo(p.Reason)) })
	w.property(pinMetadata, func() { err = w.appendMatch(&p.Metadata, v) })
	if len(p.UserData) > 0 {
		w.property(pinUserData, func() { w.bytes(p.UserData) })
	}
	return firstError(err, p.encodeContinuation(w, v))
}
