package tables

import (
	"net/netip"

	"github.com/antrail/antrail/flow"
)

// ServiceLB sends a new connection to the group that chooses an endpoint of its
// Service.
//
// ServiceEPStateField holds the state of the choice: not made
// (EpToSelectRegMark), made but not yet learned (EpToLearnRegMark), or final
// (EpSelectedRegMark).
//
// Source ranges become entries with the range in the match. One more entry drops
// all other clients, local ones too, as kube-proxy does.
//
// Reads:  ServiceEPStateField, the address and port. A NodePort has
// ToNodePortAddressRegMark instead of an address. FromLocalRegMark and
// FromTunnelRegMark choose a group of local clients or of DSR.
// Writes: RewriteMACRegMark, ServiceEPStateField, ToExternalAddressRegMark,
// ServiceGroupIDField for policies. The group's bucket writes the endpoint into
// EndpointIPField (IPv6: EndpointIP6Field) and EndpointPortField, or
// SvcNoEpRegMark if there is none.
// Next:   the group. With affinity, the group comes back with an endpoint and the
// choice is learned. Table-miss: the next table.

// lbPath sends clients of a source to a group, at a priority.
type lbPath struct {
	priority uint16
	from     term
	group    uint32
}

// lbPaths are those of an address. Clients on this Node use ClusterGroup if there
// is one. In DSR mode, connections that another Node has spread stay here.
func lbPaths(s ServiceAddress) []lbPath {
	paths := []lbPath{{priorityNormal, func(*flow.Match) {}, s.Group}}
	if s.ClusterGroup != 0 {
		paths = append(paths, lbPath{priorityHigh, FromLocalRegMark.Is(), s.ClusterGroup})
	}
	if s.DSR && s.LocalGroup != 0 {
		paths = append(paths, lbPath{priorityHigh, FromTunnelRegMark.Is(), s.LocalGroup})
	}
	return paths
}

func (p *Pipeline) balanceService(s ServiceAddress) (all []*flow.Entry) {
	for _, path := range lbPaths(s) {
		actions := p.lbActions(s, path.group)
		for _, client := range clients(s) {
			m := match(atService(s), EpToSelectRegMark.Is(), path.from, client)
			all = append(all, p.entry(forServices, tableServiceLB, path.priority, m, actions...))
		}
	}
	if len(s.SourceRanges) > 0 {
		all = append(all, p.entry(forServices, tableServiceLB, priorityLow, match(atService(s), EpToSelectRegMark.Is())))
	}
	return all
}

// clients match the clients that may connect: all, if there are no source ranges.
func clients(s ServiceAddress) []term {
	if len(s.SourceRanges) == 0 {
		return []term{func(*flow.Match) {}}
	}
	var terms []term
	for _, r := range s.SourceRanges {
		if familyOf(r.Addr()) == s.family() {
			terms = append(terms, srcIn(r.Masked()))
		}
	}
	return terms
}

func (p *Pipeline) lbActions(s ServiceAddress, group uint32) []flow.Action {
	state := EpSelectedRegMark
	if s.AffinitySeconds > 0 {
		state = EpToLearnRegMark
	}
	actions := []flow.Action{RewriteMACRegMark.Set(), state.Set()}
	if s.External {
		actions = append(actions, ToExternalAddressRegMark.Set())
	}
	if hasAntreaPolicy(p) {
		actions = append(actions, ServiceGroupIDField.Set(uint64(group)))
	}
	return append(actions, flow.GroupAction{ID: group})
}

func (s ServiceAddress) family() Family {
	if s.Addr.IsValid() {
		return familyOf(s.Addr)
	}
	return s.Family
}

// atService matches the address and port of a Service.
func atService(s ServiceAddress) term {
	return func(m *flow.Match) {
		s.family().proto(s.Proto)(m)
		m.AddExact(dstPortField(s.Proto), flow.Value{Lo: uint64(s.Port)})
		if s.Addr.IsValid() {
			dst(s.Addr)(m)
		} else {
			ToNodePortAddressRegMark.Is()(m)
		}
	}
}

// learnAffinity keeps a client at the endpoint that the group chose. The cookies
// of the entry and of the learned entries name the group.
func (p *Pipeline) learnAffinity(s ServiceAddress) *flow.Entry {
	f := s.family()
	specs := append(learnMatches(s, dstPortField(s.Proto), f.dstField(), f.srcField()),
		learnCopy(EndpointPortField), learnCopy(remoteEndpointField), learnCopy(f.endpointField()),
		learnMark(EpSelectedRegMark), learnMark(RewriteMACRegMark))
	if s.External {
		specs = append(specs, learnMark(ToExternalAddressRegMark))
	}
	cookie := p.cookie(forServices, s.Group)
	e := p.entry(forServices, tableServiceLB, priorityLow, match(atService(s), EpToLearnRegMark.Is()),
		&flow.Learn{
			Table: p.id(tableSessionAffinity), Priority: priorityNormal, HardTimeout: s.AffinitySeconds,
			DeleteLearned: true, Cookie: cookie, Specs: specs,
		},
		EpSelectedRegMark.Set(), p.goNext(tableServiceLB))
	e.Cookie = cookie
	return e
}

// learnMatches make a learned entry match packets of the Service's protocol that
// equal this packet in some fields. Dumps show the fields in this order.
func learnMatches(s ServiceAddress, like ...flow.FieldID) []flow.LearnSpec {
	specs := []flow.LearnSpec{
		learnValue(flow.EthType, s.family().etherType()),
		learnValue(flow.IPProto, uint64(s.Proto)),
	}
	for _, id := range like {
		specs = append(specs, learnSame(id))
	}
	return specs
}

func learnValue(id flow.FieldID, v uint64) flow.LearnSpec {
	return flow.LearnSpec{Kind: flow.LearnMatch, Immediate: flow.Value{Lo: v}, Dst: flow.FieldByID(id).Full()}
}

func learnSame(id flow.FieldID) flow.LearnSpec {
	f := flow.FieldByID(id).Full()
	return flow.LearnSpec{Kind: flow.LearnMatch, FromField: true, Src: f, Dst: f}
}

func learnCopy(f Field) flow.LearnSpec {
	return flow.LearnSpec{Kind: flow.LearnLoad, FromField: true, Src: f.Subfield, Dst: f.Subfield}
}

func learnMark(k Mark) flow.LearnSpec {
	return flow.LearnSpec{Kind: flow.LearnLoad, Immediate: flow.Value{Lo: k.Value}, Dst: k.Field.Subfield}
}

// bucketWeight is the weight of every endpoint.
const bucketWeight = 100

// endpointGroup is the group that chooses an endpoint. Without endpoints, it
// marks the packet for rejection (SvcNoEpRegMark).
func (p *Pipeline) endpointGroup(g EndpointGroup) *flow.Group {
	group := &flow.Group{ID: g.ID, Type: flow.GroupSelect}
	if len(g.Endpoints) == 0 {
		group.Buckets = []flow.Bucket{{
			Weight: bucketWeight, Actions: []flow.Action{SvcNoEpRegMark.Set(), p.resubmit(tableEndpointDNAT)},
		}}
		return group
	}
	chosen := p.resubmitNext(tableServiceLB)
	if g.Affinity {
		chosen = p.resubmit(tableServiceLB)
	}
	for i, e := range g.Endpoints {
		actions := append(endpointMarks(e), chosen)
		group.Buckets = append(group.Buckets, flow.Bucket{ID: uint32(i), Weight: bucketWeight, Actions: actions})
	}
	return group
}

// endpointMarks write an endpoint into the registers.
func endpointMarks(e Endpoint) (actions []flow.Action) {
	if !e.Local && !e.Host {
		actions = append(actions, RemoteEndpointRegMark.Set())
	}
	return append(actions, setEndpoint(e.Addr.Addr()), EndpointPortField.Set(uint64(e.Addr.Port())))
}

func setEndpoint(a netip.Addr) flow.Action {
	f := familyOf(a).endpointField()
	return flow.SetField{Field: f.Subfield.Field, Value: flow.ValueOfAddr(a), Mask: f.Mask()}
}
