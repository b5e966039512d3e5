package layout

import (
	"net"
	"net/netip"

	"github.com/antrail/antrail/flow"
)

// Term is one condition of a match.
type Term func(*flow.Match)

// Match is the match with all terms.
func Match(terms ...Term) flow.Match {
	var m flow.Match
	for _, t := range terms {
		t(&m)
	}
	return m
}

// Exact matches a value of a whole field.
func Exact(id flow.FieldID, v uint64) Term {
	return func(m *flow.Match) { m.AddExact(id, flow.Value{Lo: v}) }
}

// EtherTypes of matches.
const (
	EtherTypeIPv4 = 0x800
	EtherTypeARP  = 0x806
)

// IPv4 matches IPv4.
func IPv4(m *flow.Match) { m.AddExact(flow.EthType, flow.Value{Lo: EtherTypeIPv4}) }

// ARP matches ARP.
func ARP(m *flow.Match) { m.AddExact(flow.EthType, flow.Value{Lo: EtherTypeARP}) }

// InPort matches the input port.
func InPort(p Port) Term { return Exact(flow.InPort, uint64(p.No)) }

// EthAddr matches eth_src or eth_dst, or another field with an Ethernet address.
func EthAddr(id flow.FieldID, mac [6]byte) Term {
	return func(m *flow.Match) { m.AddExact(id, MACValue(mac)) }
}

// MACValue is an Ethernet address as a field's value.
func MACValue(mac [6]byte) flow.Value { return flow.ValueOfMAC(net.HardwareAddr(mac[:])) }

// Net matches addresses of a range in nw_src, nw_dst, arp_spa or arp_tpa.
func Net(id flow.FieldID, p netip.Prefix) Term {
	a := p.Masked().Addr().As4()
	v := flow.Value{Lo: uint64(a[0])<<24 | uint64(a[1])<<16 | uint64(a[2])<<8 | uint64(a[3])}
	mask := flow.Value{Lo: 1<<32 - 1<<(32-p.Bits())}
	return func(m *flow.Match) { m.Add(id, v, mask) }
}

// Host matches one address, as Net does.
func Host(id flow.FieldID, a netip.Addr) Term { return Net(id, netip.PrefixFrom(a, 32)) }

// Bits of ct_state (ovs-fields(7)).
const (
	CtNew = 1 << iota
	CtEst
	CtRel
	CtRpl
	CtInv
	CtTrk
)

// CtState matches bits of ct_state that are set and bits that are clear.
func CtState(set, clear uint64) Term {
	return func(m *flow.Match) { m.Add(flow.CTState, flow.Value{Lo: set}, flow.Value{Lo: set | clear}) }
}

// SetMAC writes eth_src or eth_dst.
func SetMAC(id flow.FieldID, mac [6]byte) flow.Action {
	return flow.SetField{Field: id, Value: MACValue(mac), Mask: flow.Ones(48)}
}

// ARPReply answers a request for an address with a MAC address (RFC 826).
func ARPReply(table uint8, priority uint16, addr netip.Addr, with [6]byte) *flow.Entry {
	set := func(id flow.FieldID, v flow.Value) flow.Action {
		return flow.SetField{Field: id, Value: v, Mask: flow.Ones(flow.FieldByID(id).Bits)}
	}
	move := func(from, to flow.FieldID) flow.Action {
		return flow.Move{Src: flow.FieldByID(from).Full(), Dst: flow.FieldByID(to).Full()}
	}
	mac := MACValue(with)
	return NewEntry(table, priority, Match(ARP, Host(flow.ArpTPA, addr), Exact(flow.ArpOp, 1)),
		move(flow.EthSrc, flow.EthDst), set(flow.EthSrc, mac), set(flow.ArpOp, flow.Value{Lo: 2}),
		move(flow.ArpSHA, flow.ArpTHA), set(flow.ArpSHA, mac),
		move(flow.ArpSPA, flow.ArpTPA), set(flow.ArpSPA, flow.ValueOfAddr(addr)), flow.OutputInPort{})
}

// ToService matches a new packet to a Service.
func ToService(s *Service) Term {
	port := flow.TCPDst
	if s.Proto == 17 {
		port = flow.UDPDst
	}
	return func(m *flow.Match) {
		for _, t := range []Term{CtState(CtNew|CtTrk, 0), IPv4, Exact(flow.IPProto, uint64(s.Proto)), Host(flow.IPDst, s.Addr.Addr()), Exact(port, uint64(s.Addr.Port()))} {
			t(m)
		}
	}
}

// CommitDNAT is Commit with a Service's endpoint as the destination.
func CommitDNAT(zone uint16, next uint8, s *Service, exec ...flow.Action) *flow.CT {
	c, end := Commit(zone, next, exec...), s.Endpoint
	c.NAT = &flow.NAT{Type: flow.NATDestination, AddrMin: end.Addr(), AddrMax: end.Addr(), PortMin: end.Port(), PortMax: end.Port()}
	return c
}

// Restore is ct(table=…,zone=…,nat): it translates as the connection does.
func Restore(zone uint16, next uint8) *flow.CT {
	return &flow.CT{Zone: zone, Table: next, NAT: &flow.NAT{Type: flow.NATRestore}}
}

// Commit is ct(commit,table=…,zone=…,exec(…)).
func Commit(zone uint16, next uint8, exec ...flow.Action) *flow.CT {
	return &flow.CT{Commit: true, Zone: zone, Table: next, Exec: exec}
}
