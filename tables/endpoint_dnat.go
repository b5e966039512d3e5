package tables

import (
	"net/netip"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// EndpointDNAT commits a Service's connection with the translation to its endpoint.
//
// The translation belongs to the connection, not to the packet. ct(commit,nat) stores it in
// conntrack, which applies it to every later packet and undoes it for the replies. So the client
// never sees the endpoint's address.
//
// Reads:  the endpoint in EndpointIPField (IPv6: EndpointIP6Field) and EpUnionField,
// SvcNoEpRegMark, DSRServiceRegMark.
// Writes: the destination, ServiceCTMark and in v1.15 the connection's source, through CtZone.
// Next:   the egress policies, which is also the table-miss. If the Service has no endpoint, the
// switch rejects the packet and informs the agent. If the endpoint's entry is gone, ServiceLB
// chooses another endpoint.

func (p *Pipeline) dnat(e Endpoint) *flow.Entry {
	f := familyOf(e.Addr.Addr())
	chosen := EpSelectedRegMark.Value<<EndpointPortField.N | uint64(e.Addr.Port())
	ct := layout.Commit(f.zone(), p.next(tableEndpointDNAT), append(setMarks(ServiceCTMark), p.sourceOfService()...)...)
	ct.NAT = dnatTo(e.Addr)
	p.inZone(ct)
	return p.entry(forServices, tableEndpointDNAT, priorityNormal,
		match(f.proto(e.Proto), endpointIs(e.Addr.Addr()), EpUnionField.Is(chosen)), ct)
}

// sourceOfService writes the connection's source in v1.15. In v2, ConntrackCommit and SNATMark
// do.
func (p *Pipeline) sourceOfService() []flow.Action {
	if isV2(p) {
		return nil
	}
	return []flow.Action{keepSource()}
}

func endpointIs(a netip.Addr) term {
	return func(m *flow.Match) {
		m.AddExact(familyOf(a).endpointField().Subfield.Field, flow.ValueOfAddr(a))
	}
}

func (p *Pipeline) noEndpoint() []*flow.Entry {
	if !hasProxy(p) {
		return nil
	}
	return []*flow.Entry{
		p.entry(forServices, tableEndpointDNAT, priorityNormal, match(SvcNoEpRegMark.Is()), p.packetIn(PacketInSvcReject)),
		p.entry(forServices, tableEndpointDNAT, priorityLow, match(EpSelectedRegMark.Is()),
			EpToSelectRegMark.Set(), p.resubmit(tableServiceLB)),
	}
}

// dsrWithoutDNAT commits a DSR connection without translation, so that it keeps its destination.
// It writes the connection's source as Antrea v1.15 does. If conntrack calls the packet invalid,
// the source is not kept.
func (p *Pipeline) dsrWithoutDNAT(f Family) []*flow.Entry {
	if !hasDSR(p) {
		return nil
	}
	return []*flow.Entry{p.entry(forServices, tableEndpointDNAT, priorityHigh,
		match(f.ip(), DSRServiceRegMark.Is()), layout.Commit(f.zone(), p.next(tableEndpointDNAT), p.sourceOfService()...))}
}
