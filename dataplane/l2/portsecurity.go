package l2

import (
	"slices"

	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/packet"
)

// MAC is an Ethernet address.
type MAC = packet.MAC

// PortSecurity limits what a port may send. The zero value has no limits.
type PortSecurity struct {
	// MACs are the port's own addresses. NORMAL learns them at no other port, and
	// sends frames for them to this one.
	MACs []MAC `json:"macs,omitzero"`
	// Enforced drops frames whose source is not in MACs, and packets that no end system needs to
	// send.
	Enforced bool `json:"enforced,omitzero"`
	// Tags allows frames with one VLAN tag if Enforced.
	Tags bool `json:"tags,omitzero"`
	// VLAN is the port's own VLAN for NORMAL, 1 to 4094; 0 for none. Without a mode, it makes the
	// port an access port.
	VLAN     uint16   `json:"vlan,omitzero"`
	VLANMode VLANMode `json:"vlanMode,omitzero"`
	// Trunks are the VLANs of a trunk; none for all.
	Trunks []uint16 `json:"trunks,omitzero"`
}

// Check returns an error if the security is invalid.
func (s *PortSecurity) Check() error { return s.checkVLANs() }

// Guard is the security of a port as walks read it. It is immutable.
type Guard struct {
	MACs     []uint64
	Enforced bool
	vlans    *vlans // nil for a trunk of all VLANs
	tags     bool
}

// GuardOf is the guard for a port's security; nil for none.
func GuardOf(s *PortSecurity) *Guard {
	g := &Guard{Enforced: s.Enforced, vlans: vlansOf(s), tags: s.Tags}
	if len(s.MACs) == 0 && !s.Enforced && g.vlans == nil {
		return nil
	}
	for _, mac := range s.MACs {
		g.MACs = append(g.MACs, macOf(mac[:]))
	}
	return g
}

// macOf is an address as a number, first byte highest.
func macOf(b []byte) uint64 {
	_ = b[5]
	return uint64(b[0])<<40 | uint64(b[1])<<32 | uint64(b[2])<<24 | uint64(b[3])<<16 | uint64(b[4])<<8 | uint64(b[5])
}

// Check is the reason to drop a frame of the port; NotDropped for none.
func (g *Guard) Check(b []byte, l *packet.Layers) telemetry.DropReason {
	tagged := l.TCI != 0 || packet.IsVLAN(l.EtherType) // a tag that is cut short has no TCI
	switch {
	case !slices.Contains(g.MACs, macOf(b[6:])):
		return telemetry.DropForeignMAC
	case tagged && (!g.tags || packet.IsVLAN(l.EtherType)): // after one tag, a VLAN EtherType is a second tag
		return telemetry.DropVLANTag
	case l.End == 0:
		return telemetry.NotDropped
	case l.EtherType == packet.EtherTypeIPv4:
		return checkIPv4(b, packet.IPv4(b[l.L3:l.End]))
	case l.EtherType == packet.EtherTypeIPv6:
		return checkIPv6(b, l)
	}
	return telemetry.NotDropped
}
