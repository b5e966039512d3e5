package conntrack

import (
	"net/netip"

	"github.com/antrail/antrail/packet"
)

// After the table was lost, running connections are picked up from whichever
// packet comes first. If that is the server's answer of a connection to a
// Service, the entry is made the wrong way round: it says that the endpoint
// called the client, the answer leaves with the endpoint's own address, and
// the client, who asked the Service, resets. So for a while a TCP packet from
// an endpoint that is no SYN makes no connection and is dropped (CT-46, D13);
// the sender repeats it, the client's packet comes first meanwhile, and it is
// translated as before.

// endpoint is an address and a TCP port, as a key has them.
type endpoint struct {
	addr   address
	family family
	port   uint16
}

// shielded is the endpoints whose packets make no connection until a time. It
// never changes; another takes its place.
type shielded struct {
	until     int64
	endpoints map[endpoint]struct{}
}

// Shield makes Track drop, with DropServerFirst, what would commit a connection
// picked up from a TCP packet of one of the endpoints, until the time until on
// the clock of Config.Now. Each call replaces the endpoints of the one before.
func (t *Table) Shield(endpoints []netip.AddrPort, until int64) {
	s := &shielded{until: until, endpoints: make(map[endpoint]struct{}, len(endpoints))}
	for _, e := range endpoints {
		s.endpoints[endpointOf(e)] = struct{}{}
	}
	t.shielded.Store(s)
}

func endpointOf(e netip.AddrPort) endpoint {
	a := e.Addr().Unmap()
	if a.Is4() {
		return endpoint{addressOf(a), ipv4, e.Port()}
	}
	return endpoint{addressOf(a), ipv6, e.Port()}
}

// serverFirst says whether the packet, which has no connection, may not make
// one because it comes from a shielded endpoint.
func (v *visit) serverFirst() bool {
	s := v.t.shield()
	if s == nil || v.now >= s.until || !v.r.Commit || v.key.proto != packet.ProtoTCP || v.related {
		return false
	}
	if packet.TCP(v.f.Bytes()[v.l4:v.end]).Flags()&packet.TCPSyn != 0 || !v.opens() {
		return false
	}
	_, held := s.endpoints[endpoint{v.key.src, v.key.family, v.key.srcPort}]
	return held
}

// shield is what Shield set; a Scratch has its table's.
func (t *Table) shield() *shielded {
	if t.parent != nil {
		return t.parent.shield()
	}
	return t.shielded.Load()
}
