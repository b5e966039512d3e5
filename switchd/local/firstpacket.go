package local

import (
	"net/netip"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
)

// FirstPackets composes the first packets of connections. A connection has the input port and the
// tuple of its first packet. The MAC addresses come from the flow entries: a match on a port, a
// source MAC and a source address names a permitted sender. MAC addresses are flow.Values here,
// as in entries.
type FirstPackets struct {
	// Routers are the next hops of packets to destinations outside this Node, by port.
	Routers map[uint32]flow.Value
	// Owners are the MAC addresses of this Node's and its pods' addresses.
	Owners map[netip.Addr]flow.Value

	senders map[uint32]flow.Value // the sender at a port
	tags    map[portAddress]uint16
	node    *door.NodePorts
}

// portAddress is a port, and a destination of packets that enter there.
type portAddress struct {
	port uint32
	mac  flow.Value
}

// NewFirstPackets reads the permitted senders and their ports from entries.
func NewFirstPackets(entries []telemetry.FlowStats, n *door.NodePorts) *FirstPackets {
	gateway, far := flow.ValueOfMAC(n.GatewayMAC[:]), flow.ValueOfMAC(n.FarMAC[:])
	f := &FirstPackets{
		senders: map[uint32]flow.Value{n.Gateway: gateway, n.Tunnel: far},
		Routers: map[uint32]flow.Value{n.Gateway: far, n.Tunnel: far},
		Owners:  map[netip.Addr]flow.Value{},
		tags:    map[portAddress]uint16{},
		node:    n,
	}
	for _, a := range n.Addresses {
		f.Owners[a] = gateway
	}
	for _, e := range entries {
		f.addSender(e.Match, gateway)
		f.addOutsidePort(e.Match, far)
	}
	return f
}

// addOutsidePort reads from a match that a port brings packets from outside to an address of this
// Node, and with which VLAN tag. The underlay's card is such a port. stranger is their source
// MAC.
func (f *FirstPackets) addOutsidePort(m flow.Minimatch, stranger flow.Value) {
	port, isPort := exactly(m, flow.InPort)
	mac, isMAC := exactly(m, flow.EthDst)
	if !isPort || !isMAC {
		return
	}
	no := uint32(port.Lo)
	if _, known := f.senders[no]; !known {
		f.senders[no], f.Routers[no] = stranger, stranger
	}
	if tag, _ := m.Get(flow.VlanTCI); tag.Lo != 0 {
		f.tags[portAddress{no, mac}] = uint16(tag.Lo)
	}
}

// addSender reads the sender at a port from a match. router is the next hop of pods.
func (f *FirstPackets) addSender(m flow.Minimatch, router flow.Value) {
	port, isPort := exactly(m, flow.InPort)
	mac, isMAC := exactly(m, flow.EthSrc)
	if !isPort || !isMAC {
		return
	}
	no := uint32(port.Lo)
	if _, known := f.Routers[no]; !known {
		f.senders[no], f.Routers[no] = mac, router
	}
	for _, field := range []flow.FieldID{flow.IPSrc, flow.IPv6Src} {
		if a, is := exactly(m, field); is {
			f.Owners[a.Addr(flow.FieldByID(field).Bits)] = mac
		}
	}
}

// exactly is the value of a field that a match compares whole. ok is false otherwise.
func exactly(m flow.Minimatch, id flow.FieldID) (v flow.Value, ok bool) {
	v, mask := m.Get(id)
	return v, mask == flow.Ones(flow.FieldByID(id).Bits)
}

// Compose makes the frame of the first packet of a connection like c.
func (f *FirstPackets) Compose(c *conntrack.Conn) []byte {
	o, m := &c.Orig, flow.Match{}
	dst, src, etherType := addressFields(o.Dst)
	to, here := f.Owners[o.Dst]
	if !here {
		to = f.Routers[c.InPort]
	}
	from, here := f.Owners[o.Src]
	if !here {
		from = f.senders[c.InPort]
	}
	for _, x := range []struct {
		id flow.FieldID
		v  flow.Value
	}{
		{flow.EthType, flow.Value{Lo: etherType}}, {flow.EthSrc, from}, {flow.EthDst, to},
		{flow.IPProto, flow.Value{Lo: uint64(o.Proto)}}, {src, flow.ValueOfAddr(o.Src)}, {dst, flow.ValueOfAddr(o.Dst)},
	} {
		m.AddExact(x.id, x.v)
	}
	if tag := f.tags[portAddress{c.InPort, to}]; tag != 0 {
		m.AddExact(flow.VlanTCI, flow.Value{Lo: uint64(tag)})
	}
	if ports, ok := portFields[o.Proto]; ok {
		m.AddExact(ports[0], flow.Value{Lo: uint64(o.SrcPort)})
		m.AddExact(ports[1], flow.Value{Lo: uint64(o.DstPort)})
	}
	flow.AssumeFirst(&m)
	return flow.Compose(&m.Value)
}

// addressFields are the fields of the two addresses in packets of an address's family, and their
// EtherType.
func addressFields(a netip.Addr) (dst, src flow.FieldID, etherType uint64) {
	if a.Is4() {
		return flow.IPDst, flow.IPSrc, packet.EtherTypeIPv4
	}
	return flow.IPv6Dst, flow.IPv6Src, packet.EtherTypeIPv6
}

// portFields are the fields of a connection's two numbers: ports, or ICMP type and code.
var portFields = map[uint8][2]flow.FieldID{
	packet.ProtoTCP:    {flow.TCPSrc, flow.TCPDst},
	packet.ProtoUDP:    {flow.UDPSrc, flow.UDPDst},
	packet.ProtoSCTP:   {flow.SCTPSrc, flow.SCTPDst},
	packet.ProtoICMP:   {flow.ICMPType, flow.ICMPCode},
	packet.ProtoICMPv6: {flow.ICMPv6Type, flow.ICMPv6Code},
}

// EndpointsOf are the addresses and ports that groups lead to.
func EndpointsOf(groups []*flow.Group) (all []netip.AddrPort) {
	for _, g := range groups {
		for i := range g.Buckets {
			if a, ok := EndpointOf(&g.Buckets[i]); ok {
				all = append(all, a)
			}
		}
	}
	return all
}

// EndpointOf is the endpoint that a bucket writes to registers: an address that fills one, and a
// port in 16 bits of another. ok is false for a bucket without both.
func EndpointOf(b *flow.Bucket) (_ netip.AddrPort, ok bool) {
	var addr netip.Addr
	var port uint16
	for _, a := range b.Actions {
		set, isSet := a.(flow.SetField)
		switch {
		case !isSet:
		case set.Mask == flow.Ones(32):
			addr = set.Value.Addr(32)
		case set.Mask == flow.Ones(128):
			addr = set.Value.Addr(128)
		case set.Mask == flow.Ones(16):
			port = uint16(set.Value.Lo)
		}
	}
	return netip.AddrPortFrom(addr, port), addr.IsValid() && port != 0
}
