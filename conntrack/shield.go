package conntrack

import (
	"net/netip"

	"github.com/antrail/antrail/conntrack/proto"
	"github.com/antrail/antrail/conntrack/tuple"
	"github.com/antrail/antrail/packet"
)

// After the table was lost, the next packet of a running connection begins the
// connection again. If that is an endpoint's answer to a client of a Service, the
// endpoint would become the client of the new connection. The answer would leave
// with the endpoint's own address, and the client would reset it.
//
// So for a while a TCP packet from an endpoint makes no connection and is dropped,
// unless it is a SYN (CT-46, D13). The endpoint sends it again. Meanwhile a packet of
// the client comes, begins the connection and is translated as before.

// endpoint is an address and a TCP port, as a key has them.
type endpoint struct {
	addr   tuple.Address
	family tuple.Family
	port   uint16
}

// shielded is the endpoints whose packets make no connection until a time. It is immutable;
// Shield replaces it.
type shielded struct {
	until     int64
	endpoints map[endpoint]struct{}
}

// Shield protects connections to endpoints after the table was lost. Track drops TCP packets of
// the endpoints that would commit a connection and are not a SYN (DropServerFirst). It does so
// until the given time, on the clock of Config.Now. Each call replaces the last endpoints.
func (t *Table) Shield(endpoints []netip.AddrPort, until int64) {
	s := &shielded{until: until, endpoints: make(map[endpoint]struct{}, len(endpoints))}
	for _, e := range endpoints {
		s.endpoints[endpointOf(e)] = struct{}{}
	}
	t.shielded.Store(s)
}

func endpointOf(e netip.AddrPort) endpoint {
	a := e.Addr().Unmap()
	return endpoint{tuple.AddressOf(a), tuple.FamilyOf(a), e.Port()}
}

// serverFirst says whether the packet must not make a connection because it comes from a
// shielded endpoint.
func (v *visit) serverFirst() bool {
	s := v.t.shield()
	if s == nil || v.now >= s.until || !v.r.Commit || v.Key.Proto != packet.ProtoTCP || v.Related {
		return false
	}
	if v.packet.Segment.Flags&packet.TCPSyn != 0 || !proto.Opens(&v.Key, &v.packet) {
		return false
	}
	_, held := s.endpoints[endpoint{v.Key.Src, v.Key.Family, v.Key.SrcPort}]
	return held
}

// shield is the shield that Shield has set. A Scratch uses its table's.
func (t *Table) shield() *shielded {
	if t.parent != nil {
		return t.parent.shield()
	}
	return t.shielded.Load()
}
