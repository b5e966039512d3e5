package layout

import (
	"net"
	"net/netip"

	"github.com/antrail/antrail/flow"
)

// Term is one thing that a match asks for.
type Term func(*flow.Match)

// Match asks for all terms.
func Match(terms ...Term) flow.Match {
	var m flow.Match
	for _, t := range terms {
		t(&m)
	}
	return m
}

// Exact asks for a value of a whole field.
func Exact(id flow.FieldID, v uint64) Term {
	return func(m *flow.Match) { m.AddExact(id, flow.Value{Lo: v}) }
}

// EtherTypes of matches.
const (
	EtherTypeIPv4 = 0x800
	EtherTypeARP  = 0x806
)

// IPv4 asks for IPv4, ARP for ARP.
func IPv4(m *flow.Match) { m.AddExact(flow.EthType, flow.Value{Lo: EtherTypeIPv4}) }

// ARP asks for ARP.
func ARP(m *flow.Match) { m.AddExact(flow.EthType, flow.Value{Lo: EtherTypeARP}) }

// InPort asks for the port of entry.
func InPort(p Port) Term { return Exact(flow.InPort, uint64(p.No)) }

// EthAddr asks for eth_src or eth_dst, or another field of an Ethernet address.
func EthAddr(id flow.FieldID, mac [6]byte) Term {
	return func(m *flow.Match) { m.AddExact(id, MACValue(mac)) }
}

// MACValue is an Ethernet address as a field has it.
func MACValue(mac [6]byte) flow.Value { return flow.ValueOfMAC(net.HardwareAddr(mac[:])) }

// Net asks for addresses of a range in nw_src, nw_dst, arp_spa or arp_tpa.
func Net(id flow.FieldID, p netip.Prefix) Term {
	a := p.Masked().Addr().As4()
	v := flow.Value{Lo: uint64(a[0])<<24 | uint64(a[1])<<16 | uint64(a[2])<<8 | uint64(a[3])}
	mask := flow.Value{Lo: 1<<32 - 1<<(32-p.Bits())}
	return func(m *flow.Match) { m.Add(id, v, mask) }
}

// Host asks for one address, as Net does.
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

// CtState asks for bits of ct_state that are set and bits that are not.
func CtState(set, clear uint64) Term {
	return func(m *flow.Match) { m.Add(flow.CTState, flow.Value{Lo: set}, flow.Value{Lo: set | clear}) }
}

// SetMAC writes eth_src or eth_dst.
func SetMAC(id flow.FieldID, mac [6]byte) flow.Action {
	return flow.SetField{Field: id, Value: MACValue(mac), Mask: flow.Ones(48)}
}

// Restore is ct(table=…,zone=…,nat): translate as the connection is.
func Restore(zone uint16, next uint8) *flow.CT {
	return &flow.CT{Zone: zone, Table: next, NAT: &flow.NAT{Type: flow.NATRestore}}
}

// Commit is ct(commit,table=…,zone=…,exec(…)).
func Commit(zone uint16, next uint8, exec ...flow.Action) *flow.CT {
	return &flow.CT{Commit: true, Zone: zone, Table: next, Exec: exec}
}
