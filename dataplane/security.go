package dataplane

import (
	"slices"

	"github.com/antrail/antrail/packet"
)

// Port security: what a port may send. OVN and Neutron have the name from their
// switch ports. A port without it sends what it likes, as a port of Open vSwitch
// does. Flow entries cannot do this: NORMAL learns from frames that match
// anything, and entries match neither IP options nor extension headers.
//
// A packet is checked once, when its walk enters, before the first table. So the
// entries stay as the controller wrote them. A walk that is replayed was checked
// when it was recorded, and the check holds for the packets that take it, because:
//
//  1. The check reads the port of entry, the Ethernet header, the IP version,
//     addresses, protocol and TTL, the ICMP type, IP options, extension headers
//     and fragment fields.
//  2. A signature (signature.go) has all of these but the last three, and the
//     packets that have one have none of the last three, nor a VLAN tag.
//  3. A first-packet megaflow (opening.go) leaves only TCP and UDP ports out of
//     its signature.
//  4. The key of an offloaded connection (shortcut.go) is a signature.
//  5. A change of a port's security publishes another set of ports, which empties
//     the caches and withdraws what the kernel forwards.
//
// Megaflows between two ct() (stretch.go) begin behind the check. A fragment is
// checked when it arrives, before it waits. Live traces watch walks that enter
// here, and a made-up packet (trace.go) is checked as a real one. Packet-outs are
// the controller's own and are not checked.

// PortSecurity is what a port may send. The zero value restricts nothing.
type PortSecurity struct {
	// MACs are the port's own addresses. NORMAL learns them at no other port, and
	// sends frames for them to this one.
	MACs [][6]byte `json:"macs,omitzero"`
	// Enforced drops frames that have another source than MACs, and packets that
	// an end system has no reason to send.
	Enforced bool `json:"enforced,omitzero"`
	// Tags allows frames with one VLAN tag where Enforced.
	Tags bool `json:"tags,omitzero"`
}

// guard is the security of a port as walks read it; it never changes.
type guard struct {
	macs     []uint64
	enforced bool
	tags     bool
}

// guardOf is the guard for a port's security; nil for none.
func guardOf(s *PortSecurity) *guard {
	if len(s.MACs) == 0 && !s.Enforced {
		return nil
	}
	g := &guard{enforced: s.Enforced, tags: s.Tags}
	for _, mac := range s.MACs {
		g.macs = append(g.macs, macOf(mac[:]))
	}
	return g
}

// macOf is an address as a number, first byte highest.
func macOf(b []byte) uint64 {
	_ = b[5]
	return uint64(b[0])<<40 | uint64(b[1])<<32 | uint64(b[2])<<24 | uint64(b[3])<<16 | uint64(b[4])<<8 | uint64(b[5])
}

// SecurePort changes the security of a port. When it returns, packets that enter
// are checked by it, and no packet takes a path that was remembered before.
func (s *Switch) SecurePort(no uint32, security PortSecurity) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.portByNumber(no)
	if err != nil {
		return err
	}
	p.guard.Store(guardOf(&security))
	s.publishPorts(slices.Clone(s.ports.Load().list))
	s.forgetForeign()
	return nil
}

// forgetForeign removes learned addresses that are configured on another port.
func (s *Switch) forgetForeign() {
	set := s.ports.Load()
	if len(set.owners) > 0 {
		s.fdb.remove(func(l *station) bool { return set.foreign(l.mac, l.port.Load()) })
	}
}

// own notes the addresses of a port. The first of two ports with one address keeps
// it.
func (s *portSet) own(p *switchPort) {
	g := p.guard.Load()
	if g == nil {
		return
	}
	if s.owners == nil {
		s.owners = map[uint64]uint32{}
	}
	for _, mac := range g.macs {
		if _, taken := s.owners[mac]; !taken {
			s.owners[mac] = p.no
		}
	}
}

// foreign says whether an address is configured on another port than this one.
func (s *portSet) foreign(mac uint64, no uint32) bool {
	owner, owned := s.owners[mac]
	return owned && owner != no
}

// violation is why a packet may not enter; NotDropped if it may. The headers must
// have been read.
func (k *walk) violation() DropReason {
	b, l := k.frame.Bytes(), &k.layers
	if p := k.w.sw.ports.Load().port(k.inPort); p != nil {
		if g := p.guard.Load(); g != nil && g.enforced {
			if why := g.check(b, l); why != NotDropped {
				return why
			}
		}
	}
	if expired(b, l) {
		return DropTTLZero
	}
	return NotDropped
}

// expired says whether a packet has a TTL or hop limit of 0. No host may send it, and
// no router may forward it (RFC 1122, section 3.2.1.7; RFC 8200, section 3). So it is
// dropped on every port. Open vSwitch forwards it.
func expired(b []byte, l *packet.Layers) bool {
	switch {
	case l.End == 0:
		return false
	case l.EtherType == packet.EtherTypeIPv4:
		return packet.IPv4(b[l.L3:]).TTL() == 0
	case l.EtherType == packet.EtherTypeIPv6:
		return packet.IPv6(b[l.L3:]).HopLimit() == 0
	}
	return false
}

// check is the reason to drop a frame of the port; NotDropped for none.
func (g *guard) check(b []byte, l *packet.Layers) DropReason {
	tagged := l.TCI != 0 || packet.IsVLAN(l.EtherType) // a tag that is cut short has no TCI
	switch {
	case !slices.Contains(g.macs, macOf(b[6:])):
		return DropForeignMAC
	case tagged && (!g.tags || packet.IsVLAN(l.EtherType)): // the type behind one tag is that of another
		return DropVLANTag
	case l.End == 0:
		return NotDropped
	case l.EtherType == packet.EtherTypeIPv4:
		return checkIPv4(b, packet.IPv4(b[l.L3:l.End]))
	case l.EtherType == packet.EtherTypeIPv6:
		return checkIPv6(b, l)
	}
	return NotDropped
}
