package openflow

import "time"

// Port is a port: a part of StatsPortDesc, and of Features in OpenFlow 1.0.
type Port struct {
	No   uint32
	Name string
	MAC  [6]byte
	// Config has the bits that a controller has set: PortDown and so on.
	Config uint32
	Alive  bool   // the link is up
	Speed  uint32 // kilobits per second, 0 if unknown
}

// Bits of a port's state.
const (
	linkDown  = 1 << 0
	stateLive = 1 << 2
)

// part implements Part.
func (p *Port) part(w *writer, v Version, _ bool) error {
	switch v {
	case V10:
		w.u16(uint16(p.No))
		p.middle(w, v)
		w.zeros(16)
	case V13:
		w.u32(p.No)
		w.u32(0)
		w.bytes(p.MAC[:])
		w.u16(0)
		p.state(w, v)
		w.zeros(16)
		w.u32(p.Speed)
		w.u32(p.Speed)
	default:
		w.u32(p.No)
		w.u16(40 + 32)
		w.u16(0)
		w.bytes(p.MAC[:])
		w.u16(0)
		p.state(w, v)
		w.u16(0) // property: Ethernet
		w.u16(32)
		w.zeros(4 + 16)
		w.u32(p.Speed)
		w.u32(p.Speed)
	}
	return nil
}

func (p *Port) middle(w *writer, v Version) {
	w.bytes(p.MAC[:])
	p.state(w, v)
}

// state writes name, configuration and state.
func (p *Port) state(w *writer, v Version) {
	w.name(p.Name, 16)
	config, state := p.Config&portConfigBits(v), uint32(0)
	if !p.Alive {
		state |= linkDown
	} else if v >= V13 {
		state |= stateLive
	}
	w.u32(config)
	w.u32(state)
}

// Unknown is a counter that a switch does not have.
const Unknown = ^uint64(0)

// PortStats are a port's counters: a part of StatsPort.
type PortStats struct {
	No                                    uint32
	RxPackets, RxBytes, RxDropped, RxErrs uint64
	TxPackets, TxBytes, TxDropped, TxErrs uint64
	Duration                              time.Duration
}

// part implements Part.
func (s *PortStats) part(w *writer, v Version, _ bool) error {
	if v >= V14 {
		w.u16(80 + 40)
		w.u16(0)
	}
	if v == V10 {
		w.u16(uint16(s.No))
		w.zeros(6)
	} else {
		w.u32(s.No)
	}
	switch {
	case v == V13:
		w.u32(0)
	case v >= V14:
		w.duration(s.Duration)
	}
	for _, n := range []uint64{s.RxPackets, s.TxPackets, s.RxBytes, s.TxBytes, s.RxDropped, s.TxDropped, s.RxErrs, s.TxErrs} {
		w.u64(n)
	}
	if v >= V14 {
		w.u16(0) // property: Ethernet
		w.u16(40)
		w.u32(0)
	}
	for range 4 { // frame, overrun and CRC errors, collisions
		w.u64(Unknown)
	}
	if v == V13 {
		w.duration(s.Duration)
	}
	return nil
}

// PortMod is OFPT_PORT_MOD.
type PortMod struct {
	No           uint32
	MAC          [6]byte
	Config, Mask uint32
}

func decodePortMod(r *reader, v Version) (Body, error) {
	p := &PortMod{}
	if v == V10 {
		p.No = port16(r)
		copy(p.MAC[:], r.take(6))
	} else {
		p.No = r.u32()
		r.skip(4)
		copy(p.MAC[:], r.take(6))
		r.skip(2)
	}
	p.Config, p.Mask = r.u32(), r.u32()
	r.rest() // features to advertise
	return p, nil
}

// QueueConfig is a request for the queues of a port, which is a message before OpenFlow 1.4.
type QueueConfig struct{ Port uint32 }

// QueueConfigReply is its answer: no queue.
type QueueConfigReply struct{ Port uint32 }

func decodeQueueConfig(r *reader, v Version) (Body, error) {
	q := &QueueConfig{}
	if v == V10 {
		q.Port = port16(r)
		r.skip(2)
	} else {
		q.Port = r.u32()
		r.skip(4)
	}
	return q, nil
}

// encode implements Body.
func (q *QueueConfigReply) encode(w *writer, v Version) error {
	if v == V10 {
		w.u16(uint16(q.Port))
		w.zeros(6)
	} else {
		w.u32(q.Port)
		w.u32(0)
	}
	return nil
}

// PortReason is the reason of a PortStatus.
type PortReason uint8

// The reasons.
const (
	PortAdded PortReason = iota
	PortDeleted
	PortModified
)

// PortStatus is OFPT_PORT_STATUS: a port that came, went or changed.
type PortStatus struct {
	Reason PortReason
	Port   Port
}

// encode implements Body.
func (p *PortStatus) encode(w *writer, v Version) error {
	w.u8(uint8(p.Reason))
	w.zeros(7)
	return p.Port.part(w, v, false)
}

// Bits of a port's configuration (ofp_port_config), which a controller sets. Only OpenFlow 1.0 has
// PortNoFlood and the bits of STP.
const (
	PortDown       = 1 << 0
	PortNoSTP      = 1 << 1
	PortNoReceive  = 1 << 2
	PortNoSTPIn    = 1 << 3
	PortNoFlood    = 1 << 4
	PortNoForward  = 1 << 5
	PortNoPacketIn = 1 << 6
)

// portConfigBits are the bits that a version has.
func portConfigBits(v Version) uint32 {
	if v == V10 {
		return PortNoPacketIn<<1 - 1
	}
	return PortDown | PortNoReceive | PortNoForward | PortNoPacketIn
}
