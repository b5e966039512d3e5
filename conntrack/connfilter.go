package conntrack

import (
	"net/netip"

	"github.com/antrail/antrail/conntrack/proto"
	"github.com/antrail/antrail/packet"
)

// Filter chooses connections. The zero value matches all. A connection must match all fields
// that are set. Address and Port are compared with both ends in both directions, so a
// connection is found by its tuples before and after NAT.
type Filter struct {
	Zone *uint16 `json:"zone,omitzero"` // only this zone
	// Address is an address or a range of one of the ends.
	Address netip.Prefix `json:"address,omitzero"`
	// Port is a TCP, UDP or SCTP port of one of the ends; 0 for any.
	Port uint16 `json:"port,omitzero"`
	// State is a protocol's state as a dump prints it, one of States.
	State string `json:"state,omitzero"`
	// Mark is compared under MarkMask.
	Mark     uint32 `json:"mark,omitzero"`
	MarkMask uint32 `json:"markMask,omitzero"`
}

// Takes says whether the filter matches a connection.
func (f *Filter) Takes(c *Conn) bool {
	return (f.Zone == nil || *f.Zone == c.Zone) &&
		(c.Mark^f.Mark)&f.MarkMask == 0 &&
		(f.State == "" || f.State == c.State) &&
		(f.Port == 0 || c.Orig.hasPort(f.Port) || c.Reply.hasPort(f.Port)) &&
		(!f.Address.IsValid() || c.Orig.within(f.Address) || c.Reply.within(f.Address))
}

// hasPort says whether one of the ends has a port. The numbers of ICMP are not ports.
func (d *Direction) hasPort(port uint16) bool {
	switch d.Proto {
	case packet.ProtoTCP, packet.ProtoUDP, packet.ProtoSCTP:
		return d.SrcPort == port || d.DstPort == port
	}
	return false
}

func (d *Direction) within(p netip.Prefix) bool { return p.Contains(d.Src) || p.Contains(d.Dst) }

// States are the names that Conn.State can have, sorted.
func States() []string { return proto.StateNames() }
