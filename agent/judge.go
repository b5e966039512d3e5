package agent

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/host"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/tables"
)

// judge makes up the first packets of connections and has them walk. MAC
// addresses are flow.Values here, as entries have them.
type judge struct {
	trace   func(*dataplane.TraceRequest) (*dataplane.Trace, error)
	senders map[uint32]flow.Value     // by port: who sends there
	routers map[uint32]flow.Value     // by port: the next hop of what is for nobody here
	owners  map[netip.Addr]flow.Value // of addresses of this Node and its pods
	node    nodePorts
}

// nodePorts are the two ports that are no pod's, and the gateway's addresses.
type nodePorts struct {
	gateway, tunnel uint32 // port numbers
	gatewayMAC      [6]byte
	addresses       []netip.Addr
}

func (c *Config) nodePorts() nodePorts {
	n := nodePorts{gateway: c.Gateway.OFPort, tunnel: c.Tunnel.OFPort, gatewayMAC: c.Gateway.MAC}
	for _, g := range c.Gateway.Addresses {
		n.addresses = append(n.addresses, g.Addr())
	}
	return n
}

// newJudge knows the pods' addresses by the entries that say from where they may
// send.
func newJudge(p *pipeline, c nodePorts) *judge {
	gateway, far := valueOfMAC(c.gatewayMAC), valueOfMAC(tables.GlobalVirtualMAC)
	j := &judge{
		trace:   p.sw.Trace,
		senders: map[uint32]flow.Value{c.gateway: gateway, c.tunnel: far},
		routers: map[uint32]flow.Value{c.gateway: far, c.tunnel: far},
		owners:  map[netip.Addr]flow.Value{},
		node:    c,
	}
	for _, a := range c.addresses {
		j.owners[a] = gateway
	}
	for _, f := range p.sw.Flows() {
		j.sender(&f.Match, gateway)
	}
	return j
}

// sender notes what a match says of who sends from a port. router is the pods'.
func (j *judge) sender(m *flow.Match, router flow.Value) {
	port, isPort := exactly(m, flow.InPort)
	mac, isMAC := exactly(m, flow.EthSrc)
	if !isPort || !isMAC {
		return
	}
	no := uint32(port.Lo)
	if _, known := j.routers[no]; !known {
		j.senders[no], j.routers[no] = mac, router
	}
	for _, field := range []flow.FieldID{flow.IPSrc, flow.IPv6Src} {
		if a, is := exactly(m, field); is {
			j.owners[addressOf(a, flow.FieldByID(field).Bits)] = mac
		}
	}
}

// exactly is the value that a match asks for in a whole field.
func exactly(m *flow.Match, id flow.FieldID) (flow.Value, bool) {
	v, mask := m.Get(id)
	return v, mask == flow.Ones(flow.FieldByID(id).Bits)
}

func valueOfMAC(m [6]byte) flow.Value {
	return flow.Value{Lo: uint64(binary.BigEndian.Uint16(m[:]))<<32 | uint64(binary.BigEndian.Uint32(m[2:]))}
}

// macOfValue is the way back.
func macOfValue(v flow.Value) (m [6]byte) {
	binary.BigEndian.PutUint16(m[:], uint16(v.Lo>>32))
	binary.BigEndian.PutUint32(m[2:], uint32(v.Lo))
	return m
}

// addressOf is a field's value of 32 or 128 bits as an address.
func addressOf(v flow.Value, bits int) netip.Addr {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], v.Hi)
	binary.BigEndian.PutUint64(b[8:], v.Lo)
	a, _ := netip.AddrFromSlice(b[16-bits/8:])
	return a
}

// judge says what is to become of a connection.
func (j *judge) judge(c *conntrack.Conn) rejudged {
	if _, known := j.senders[c.InPort]; !known {
		return judgedUnknown
	}
	t, err := j.trace(&dataplane.TraceRequest{
		InPort: c.InPort, Frame: j.first(c), Metadata: j.mark(c), Stranger: true,
		PickBucket: func(g *flow.Group, chosen int) int { return bucketOf(g, c, chosen) },
	})
	switch {
	case err != nil:
		return judgedUnknown
	case zoneOf(t) != nil && *zoneOf(t) != c.Zone:
		return judgedOther
	}
	switch t.Verdict.Reason {
	case dataplane.DropByEntry, dataplane.DropTableMiss, dataplane.DropNoOutput:
		return judgedDenied
	case dataplane.NotDropped:
		return whither(t, c)
	}
	return judgedKept
}

// mark is the packet mark of what the Node itself sends to its pods, which policies let
// through. What it masqueraded has the gateway's address too, and had no mark; nobody
// knows any more which a connection is, and to keep it is the smaller error.
func (j *judge) mark(c *conntrack.Conn) (m flow.Match) {
	if c.InPort == j.node.gateway && slices.Contains(j.node.addresses, c.Orig.Src) {
		m.AddExact(flow.PktMark, flow.Value{Lo: host.ProbeMark})
	}
	return m
}

// whither says what is to become of a connection whose packet was not dropped.
// One that goes to the agent and nowhere else is rejected there.
func whither(t *dataplane.Trace, c *conntrack.Conn) rejudged {
	switch {
	case t.Verdict.PacketIn && len(t.Verdict.Outputs) == 0:
		return judgedDenied
	case !leads(t, c):
		return judgedMoved
	}
	return judgedKept
}

// zoneOf is the zone that a packet comes to first; nil: to none.
func zoneOf(t *dataplane.Trace) *uint16 {
	for i := range t.Steps {
		if s := &t.Steps[i]; s.Kind == dataplane.StepCT {
			return &s.CT.Zone
		}
	}
	return nil
}

// first is the packet that begins a connection like c.
func (j *judge) first(c *conntrack.Conn) []byte {
	o, m := &c.Orig, flow.Match{}
	dst, src, etherType := addressFields(o.Dst)
	to, here := j.owners[o.Dst]
	if !here {
		to = j.routers[c.InPort]
	}
	from, here := j.owners[o.Src]
	if !here {
		from = j.senders[c.InPort]
	}
	for _, f := range []struct {
		id flow.FieldID
		v  flow.Value
	}{
		{flow.EthType, flow.Value{Lo: etherType}}, {flow.EthSrc, from}, {flow.EthDst, to},
		{flow.IPProto, flow.Value{Lo: uint64(o.Proto)}}, {src, flow.ValueOfAddr(o.Src)}, {dst, flow.ValueOfAddr(o.Dst)},
	} {
		m.AddExact(f.id, f.v)
	}
	if ports, ok := portFields[o.Proto]; ok {
		m.AddExact(ports[0], flow.Value{Lo: uint64(o.SrcPort)})
		m.AddExact(ports[1], flow.Value{Lo: uint64(o.DstPort)})
	}
	flow.AssumeFirst(&m)
	return flow.Compose(&m.Value)
}

// addressFields are where packets of an address's family have the two addresses,
// and their EtherType.
func addressFields(a netip.Addr) (dst, src flow.FieldID, etherType uint64) {
	if a.Is4() {
		return flow.IPDst, flow.IPSrc, packet.EtherTypeIPv4
	}
	return flow.IPv6Dst, flow.IPv6Src, packet.EtherTypeIPv6
}

// portFields are the fields that a connection's two numbers stand in: ports, or
// type and code.
var portFields = map[uint8][2]flow.FieldID{
	packet.ProtoTCP:    {flow.TCPSrc, flow.TCPDst},
	packet.ProtoUDP:    {flow.UDPSrc, flow.UDPDst},
	packet.ProtoSCTP:   {flow.SCTPSrc, flow.SCTPDst},
	packet.ProtoICMP:   {flow.ICMPType, flow.ICMPCode},
	packet.ProtoICMPv6: {flow.ICMPv6Type, flow.ICMPv6Code},
}

// bucketOf is the bucket of a group that leads to a connection's endpoint, or
// the one that the walk has chosen.
func bucketOf(g *flow.Group, c *conntrack.Conn, chosen int) int {
	for i := range g.Buckets {
		if to, ok := endpointOf(&g.Buckets[i]); ok && to == netip.AddrPortFrom(c.Reply.Src, c.Reply.SrcPort) {
			return i
		}
	}
	return chosen
}

// leads says whether a packet leaves for where the connection's answers come
// from.
func leads(t *dataplane.Trace, c *conntrack.Conn) bool {
	to := c.After()
	dst, _, _ := addressFields(to.Dst)
	want := map[flow.FieldID]flow.Value{dst: flow.ValueOfAddr(to.Dst)}
	if ports, ok := portFields[to.Proto]; ok {
		want[ports[1]] = flow.Value{Lo: uint64(to.DstPort)}
	}
	return slices.ContainsFunc(t.Steps, func(s dataplane.Step) bool {
		if s.Kind != dataplane.StepOutput {
			return false
		}
		for id, v := range want {
			if flow.FieldByID(id).Get(&s.After) != v {
				return false
			}
		}
		return true
	})
}

// endpointsOf are the addresses and ports that groups lead to.
func endpointsOf(groups []*flow.Group) (all []netip.AddrPort) {
	for _, g := range groups {
		for i := range g.Buckets {
			if a, ok := endpointOf(&g.Buckets[i]); ok {
				all = append(all, a)
			}
		}
	}
	return all
}

// endpointOf is the endpoint that a bucket notes in registers: an address that
// fills one, and a port in 16 bits of another.
func endpointOf(b *flow.Bucket) (_ netip.AddrPort, ok bool) {
	var addr netip.Addr
	var port uint16
	for _, a := range b.Actions {
		set, isSet := a.(flow.SetField)
		switch {
		case !isSet:
		case set.Mask == flow.Ones(32):
			addr = addressOf(set.Value, 32)
		case set.Mask == flow.Ones(128):
			addr = addressOf(set.Value, 128)
		case set.Mask == flow.Ones(16):
			port = uint16(set.Value.Lo)
		}
	}
	return netip.AddrPortFrom(addr, port), addr.IsValid() && port != 0
}
