package dataplane

import (
	"slices"

	"github.com/antrail/antrail/dataplane/l2"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/packet"
)

// Port security limits what a port may send. OVN and Neutron use this name for their switch
// ports. A port without it may send anything, as a port of Open vSwitch does. Flow entries cannot
// do this: NORMAL learns from frames that match anything, and entries match neither IP options
// nor extension headers.
//
// A packet is checked once, when its walk enters, before the first table. So the entries stay as
// the controller wrote them. A replayed walk was checked when it was recorded. The check holds
// for the packets that replay it, because:
//
//  1. The check reads the port of entry, the Ethernet header, the IP version, addresses, protocol
//     and TTL. It also reads the ICMP type, IP options, extension headers and fragment fields.
//  2. A signature (flowcache/signature.go) has all of these but the last three. The packets that
//     have a signature have none of the last three, nor a VLAN tag.
//  3. A wildcard signature (flowcache/wildcard.go) leaves only TCP and UDP ports out of its
//     signature.
//  4. The key of an offloaded connection (ports/offload.go) is a signature.
//  5. A change of a port's security publishes another set of ports, which empties the caches and
//     withdraws the offload entries.
//
// Megaflows between two ct() (flowcache/megaflow.go) begin after the check. A fragment is checked
// when it arrives, before it waits. Live traces watch walks that enter here, and a made-up packet
// (trace.go) is checked as a real one. Packet-outs are not checked, because the controller sends
// them.

// SecurePort changes the security of a port. After it returns, it holds for every packet that
// enters, and no packet takes a path recorded before.
func (s *Switch) SecurePort(no uint32, security l2.PortSecurity) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.portByNumber(no)
	if err == nil {
		err = security.Check()
	}
	if err != nil {
		return err
	}
	p.guard.Store(l2.GuardOf(&security))
	s.publishPorts(slices.Clone(s.ports.Load().list))
	s.forgetForeign()
	return nil
}

// ConfigurePort sets a port's OpenFlow configuration. When it returns, the configuration holds
// for all packets.
func (s *Switch) ConfigurePort(no uint32, c telemetry.PortConfig) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.portByNumber(no)
	if err != nil {
		return err
	}
	p.config.Store(&c)
	s.publishPorts(slices.Clone(s.ports.Load().list))
	return nil
}

// forgetForeign removes learned addresses that are configured on another port.
func (s *Switch) forgetForeign() {
	set := s.ports.Load()
	if len(set.owners) > 0 {
		s.fdb.Remove(func(l *l2.Station) bool { return set.foreign(l.MAC, l.Port.Load()) })
	}
}

// own records the addresses of a port. If two ports have one address, the first keeps it.
func (s *portSet) own(p *switchPort) {
	g := p.guard.Load()
	if g == nil {
		return
	}
	if s.owners == nil {
		s.owners = map[uint64]uint32{}
	}
	for _, mac := range g.MACs {
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

// guard is the security of a port; nil for none.
func (s *portSet) guard(no uint32) *l2.Guard {
	if p := s.port(no); p != nil {
		return p.guard.Load()
	}
	return nil
}

// violation is why a packet may not enter; NotDropped if it may. The caller has read the headers.
func (k *walk) violation() telemetry.DropReason {
	b, l := k.frame.Bytes(), &k.layers
	if p := k.w.sw.ports.Load().port(k.inPort); p != nil {
		if c := p.config.Load(); c.Down || c.NoReceive {
			return telemetry.DropNoReceive
		}
		if g := p.guard.Load(); g != nil && g.Enforced {
			if why := g.Check(b, l); why != telemetry.NotDropped {
				return why
			}
		}
	}
	if expired(b, l) {
		return telemetry.DropTTLZero
	}
	return telemetry.NotDropped
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
