package openflow

// PortReason is what happened to a port.
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

// Bits of a port's configuration (ofp_port_config), which a controller sets. FLOOD and the bits of
// STP are of OpenFlow 1.0 alone.
const (
	PortDown       = 1 << 0
	PortNoSTP      = 1 << 1
	PortNoReceive  = 1 << 2
	PortNoSTPIn    = 1 << 3
	PortNoFlood    = 1 << 4
	PortNoForward  = 1 << 5
	PortNoPacketIn = 1 << 6
)

// portConfigBits are those that a version has.
func portConfigBits(v Version) uint32 {
	if v == V10 {
		return PortNoPacketIn<<1 - 1
	}
	return PortDown | PortNoReceive | PortNoForward | PortNoPacketIn
}
