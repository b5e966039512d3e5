package tables

import (
	"net/netip"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// The index of the pipeline by object. It shows which entries a Node, a Pod, a Service or a
// policy rule has, and which table file makes each. Two objects may need the same entry (two
// Services with one endpoint). The caller installs it once.

// Static are the entries that depend on the Config alone: table-misses, those of the gateway and
// the tunnel, and those of features.
func (p *Pipeline) Static() []*flow.Entry {
	all := p.tableMisses()
	if isExternal(p) {
		all = append(all, p.external()...)
		return append(all, p.each(p.externalOf)...)
	}
	all = append(all, p.staticAny()...)
	return append(all, p.each(p.staticOf)...)
}

// staticAny are the static entries that are the same for all families.
func (p *Pipeline) staticAny() []*flow.Entry {
	return concat(
		p.rootARP(),
		p.arpSender(p.c.Gateway, p.c.GatewayIPs),
		p.arpReplyForAll(),
		p.arpNormal(),
		p.classifyGateway(),
		p.classifyTunnel(),
		p.ndSwitch(),
		p.ndDrop(),
		one(p.stateOfNew()),
		p.stateOfDSR(),
		p.noAffinity(),
		p.dsrInvalid(),
		p.noEndpoint(),
		p.servicesToGateway(),
		p.routeOnLink(),
		p.routeServiceOut(),
		one(p.routeDefault()),
		p.egressNever(hosts(p.c.NodeIPs)),
		p.egressNever(p.c.ServiceCIDRs),
		p.egressNever(p.c.EgressExcept),
		p.egressDefault(),
		p.egressUnlimited(),
		one(p.switchTo(p.c.Gateway, 0)),
		p.switchToTunnel(),
		p.trafficReturned(),
		p.ingressPassing(),
		p.ingressNodePorts(),
		p.dnsReplies(),
		one(p.outputPort()),
		p.outputHairpin(),
		p.outputControlled(),
		p.outputToAgent(),
		p.l7Ports(),
		p.multicast(),
		p.underlay(),
	)
}

// staticOf are the static entries of one family.
func (p *Pipeline) staticOf(f Family) []*flow.Entry {
	return concat(
		p.rootIP(f),
		p.guardGateway(f),
		p.unSNAT(f),
		p.trackConnections(f),
		p.stateOfConnections(f),
		p.stateOfServices(f),
		p.preRouting(f),
		p.nodePortAddresses(f),
		p.dsrWithoutDNAT(f),
		p.egressEstablished(f),
		p.routeToGateway(f),
		p.routeOut(f),
		p.routeToNode(f),
		p.egressUnknown(f),
		p.decTTL(f),
		p.markGatewaySNAT(f),
		p.snat(f),
		p.ingressProbes(f),
		p.ingressEstablished(f),
		p.dnsReply(f),
		p.commitNew(f),
	)
}

// external are the entries of an external Node that are the same for all families.
func (p *Pipeline) external() []*flow.Entry {
	return concat(
		one(p.rootNonIP()),
		one(p.stateOfNew()),
		p.bypasses(),
		p.dnsReplies(),
		one(p.outputPort()),
		p.outputToAgent(),
	)
}

// externalOf are the entries of an external Node for one family.
func (p *Pipeline) externalOf(f Family) []*flow.Entry {
	return concat(
		p.rootIP(f),
		p.trackConnections(f),
		p.stateOfConnections(f),
		p.egressEstablished(f),
		p.ingressEstablished(f),
		p.dnsReply(f),
		p.commitNew(f),
	)
}

// ExternalLink are the entries between a card of an external Node and the machine.
func (p *Pipeline) ExternalLink(l ExternalLink) []*flow.Entry {
	return []*flow.Entry{
		p.switchAcross(l.Host, l.Uplink), p.switchAcross(l.Uplink, l.Host),
		p.passAcross(l.Host, l.Uplink), p.passAcross(l.Uplink, l.Host),
	}
}

// l7Ports are the ways to the application-aware engine and back, in v1.15.
func (p *Pipeline) l7Ports() []*flow.Entry {
	if !p.c.Features.L7Policy || isV2(p) {
		return nil
	}
	return []*flow.Entry{p.classifyL7Return(), p.outputL7()}
}

// L7Redirection are the ways to the application-aware engine and back, in v2. Every rule that
// redirects needs them.
func (p *Pipeline) L7Redirection() []*flow.Entry {
	if !p.c.Features.L7Policy || !isV2(p) {
		return nil
	}
	return append(p.each(p.trackL7), p.classifyL7Return(), p.trafficReturnedL7(), p.outputL7(), p.outputL7Return())
}

// multicast are the entries of Multicast that depend on the Config alone.
func (p *Pipeline) multicast() []*flow.Entry {
	if !hasMulticast(p) {
		return nil
	}
	return concat(
		p.classifyMulticastIn(),
		p.classifyMulticast(),
		p.reportsPass(),
		one(p.igmpUncounted(tableMulticastEgressPodMetric)),
		p.reportsToAgent(),
		one(p.multicastOut()),
		one(p.igmpUncounted(tableMulticastIngressPodMetric)),
		p.multicastOutput(),
	)
}

// underlay are the entries of FlexibleIPAM that depend on the Config alone.
func (p *Pipeline) underlay() []*flow.Entry {
	if !hasFlexibleIPAM(p) {
		return nil
	}
	all := concat(p.rootOfUnderlay(), p.arpOfUnderlay(), p.classifyHost(), p.switchOnUnderlay(), one(p.untagCard()))
	for _, a := range p.addrsInFamilies(p.c.GatewayIPs) {
		if familyOf(a) == IPv4 {
			all = append(all, p.arpReplyFor(a, p.c.Gateway.MAC))
		}
	}
	return append(all, p.each(p.routeToHost)...)
}

// multicastPod are the entries that count a Pod's multicast packets.
func (p *Pipeline) multicastPod(pod Pod) []*flow.Entry {
	if !hasMulticast(p) {
		return nil
	}
	return append(p.multicastFromPod(pod), p.multicastToPod(pod))
}

// MulticastGroup is the entry and the group of a multicast address.
func (p *Pipeline) MulticastGroup(g MulticastGroup) (*flow.Entry, *flow.Group) {
	return p.multicastTo(g), p.receivers(g.ID, append([]uint32{p.c.Gateway.No}, g.Ports...), g.Nodes)
}

// MulticastNeighbours are the groups of all Pods of this Node and of all Nodes behind the tunnel,
// and the entry that sends to those Nodes.
func (p *Pipeline) MulticastNeighbours(pods []uint32, nodes []netip.Addr) (entries []*flow.Entry, groups []*flow.Group) {
	groups = []*flow.Group{p.receivers(GroupMulticastPods, pods, nil)}
	if hasTunnel(p) {
		entries, groups = one(p.reportsToNodes()), append(groups, p.receivers(groupMulticastNodes, nil, nodes))
	}
	return entries, groups
}

// Meters limit packet-ins: PacketInRate packets a second each, and twice that in a burst.
func (p *Pipeline) Meters() []*flow.Meter {
	all := []*flow.Meter{p.packetInMeter(meterPolicy), p.packetInMeter(meterTraceflow), p.packetInMeter(meterDNS)}
	if hasMulticast(p) {
		all = append(all, p.packetInMeter(meterIGMP))
	}
	return all
}

// StaticGroups are the groups with which policies log.
func (p *Pipeline) StaticGroups() []*flow.Group {
	return []*flow.Group{
		p.loggingGroup(groupEgressRule, tableEgressRule),
		p.loggingGroup(groupEgressMetric, tableEgressMetric),
		p.loggingGroup(groupIngressRule, tableIngressRule),
		p.loggingGroup(groupIngressMetric, tableIngressMetric),
	}
}

// Pod are the entries of a Pod of this Node.
func (p *Pipeline) Pod(pod Pod) []*flow.Entry {
	if pod.Routed {
		return p.routedPod(pod)
	}
	return concat(
		p.arpSender(pod.Port, pod.IPs),
		one(p.classifyPod(pod)),
		p.classifyUnderlay(pod),
		p.guardPod(pod),
		p.ndFromPod(pod),
		p.routeToPod(pod),
		one(p.switchTo(pod.Port, pod.VLAN)),
		p.tagPod(pod),
		p.multicastPod(pod),
	)
}

// routedPod are the entries of a Pod behind a routed link. It sends no ARP. Others that ask for
// it in ARP get the MAC address of the switch's end of its link. It has no multicast.
func (p *Pipeline) routedPod(pod Pod) []*flow.Entry {
	all := concat(one(p.classifyRouted(pod)), p.guardPod(pod), p.routeToRouted(pod))
	for _, a := range p.addrsInFamilies(pod.IPs) {
		if familyOf(a) == IPv4 {
			all = append(all, p.arpReplyFor(a, layout.LinkMAC(pod.Port.No)))
		}
	}
	return all
}

// Peer are the entries of another Node.
func (p *Pipeline) Peer(peer Peer) (all []*flow.Entry) {
	for _, gateway := range p.addrsInFamilies(peer.GatewayIPs) {
		if familyOf(gateway) == IPv4 {
			all = append(all, p.arpReplyFor(gateway, GlobalVirtualMAC))
		}
	}
	all = append(all, p.routeToPeer(peer)...)
	return append(all, p.egressNever(hosts(peer.NodeIPs))...)
}

// Endpoint are the entries of an endpoint, the same for all Services. There are none without
// AntreaProxy or in a family that this Node does not have; likewise for ServiceAddress.
func (p *Pipeline) Endpoint(e Endpoint) []*flow.Entry {
	if !hasProxy(p) || !p.hasFamily(familyOf(e.Addr.Addr())) {
		return nil
	}
	all := []*flow.Entry{p.dnat(e)}
	if e.Local {
		all = append(all, p.markHairpin(e.Addr.Addr()))
	}
	return all
}

// EndpointGroup is the group that chooses an endpoint, all with the same probability. It is nil
// without AntreaProxy.
func (p *Pipeline) EndpointGroup(g EndpointGroup) *flow.Group {
	if !hasProxy(p) {
		return nil
	}
	return p.endpointGroup(g)
}

// ServiceAddress are the entries of one address and port of a Service. A NodePort has none
// without proxyAll. DSR is ignored for IPv6.
func (p *Pipeline) ServiceAddress(s ServiceAddress) []*flow.Entry {
	if !hasProxy(p) || !p.hasFamily(s.family()) || !s.Addr.IsValid() && !hasProxyAll(p) {
		return nil
	}
	s.DSR = s.DSR && hasDSR(p) && s.family() == IPv4
	all := p.balanceService(s)
	if s.AffinitySeconds > 0 {
		all = append(all, p.learnAffinity(s))
	}
	if s.DSR {
		all = append(all, p.learnDSR(s))
	}
	return all
}

// Rule are all entries of a policy rule. Without AntreaPolicy, rules of
// Antrea-native policies outside Baseline have none.
func (p *Pipeline) Rule(r Rule) []*flow.Entry {
	return append(p.RuleActions(r), p.RuleClauses(r)...)
}

// RuleActions are the entries that carry out a rule and those that count it.
func (p *Pipeline) RuleActions(r Rule) []*flow.Entry {
	if !p.hasEntries(r) {
		return nil
	}
	return append(p.ruleActions(r), p.metrics(r)...)
}

// RuleClauses are the entries of a rule's clauses.
func (p *Pipeline) RuleClauses(r Rule) []*flow.Entry {
	if !p.hasEntries(r) {
		return nil
	}
	return concat(p.fromEntries(r), p.toEntries(r), p.serviceEntries(r))
}

// ClauseEntry are the entries of one address in a rule's From or To, equal to those in
// RuleClauses. Rules of one direction, kind and priority share the matches and differ only in
// actions (Conjunction), unless only some are applied to Services.
func (p *Pipeline) ClauseEntry(r Rule, c Clause, a Address) []*flow.Entry {
	if !p.hasEntries(r) {
		return nil
	}
	return p.clauseEntries(r, c, addressMatches(r, c, []Address{a}))
}

// Conjunction is the action of the entries of a rule's clause. It is false if the rule has no
// such clause, or no entries at all.
func (p *Pipeline) Conjunction(r Rule, c Clause) (flow.Conjunction, bool) {
	places := clausesOf(r)
	return flow.Conjunction{ID: r.ID, Clause: places.place[c], N: places.n}, p.hasEntries(r) && places.place[c] != 0
}

// DefaultDrop are the entries that isolate a Pod in a direction: they drop packets that no K8s
// policy allows. Ingress needs only the Pod's port, egress only its addresses.
func (p *Pipeline) DefaultDrop(d Direction, pod Pod) []*flow.Entry {
	if d == Egress {
		return p.egressDefaultDrop(pod, nil)
	}
	return p.ingressDefaultDrop(pod, nil)
}

// LoggedDefaultDrop is DefaultDrop for a Pod whose Namespace logs denied packets: the packet goes
// to the agent and nowhere else.
func (p *Pipeline) LoggedDefaultDrop(d Direction, pod Pod) []*flow.Entry {
	actions := p.logDrop(sides[d].fallback)
	if d == Egress {
		return p.egressDefaultDrop(pod, actions)
	}
	return p.ingressDefaultDrop(pod, actions)
}

// PodEgress gives a Pod of this Node an Egress address. There are no entries without Egress, or
// in a family that this Node does not have; likewise for EgressAddress. An address of another
// Node needs a tunnel.
func (p *Pipeline) PodEgress(port Port, e EgressIP) []*flow.Entry {
	switch {
	case !hasEgress(p) || !p.hasFamily(familyOf(e.Addr)):
		return nil
	case e.Mark == 0 && !hasTunnel(p):
		return nil
	case e.Mark == 0:
		return one(p.egressElsewhere(port, e))
	}
	return one(p.egressHere(port, e))
}

// EgressAddress accepts packets that other Nodes send for an address of this Node. For an address
// of another Node, there are no entries.
func (p *Pipeline) EgressAddress(e EgressIP) []*flow.Entry {
	if !hasEgress(p) || !p.hasFamily(familyOf(e.Addr)) || e.Mark == 0 {
		return nil
	}
	return one(p.egressFromTunnel(e))
}

// EgressLimit is the entry and the meter of an address's rate. Without EgressQoS, there are none.
func (p *Pipeline) EgressLimit(l EgressLimit) ([]*flow.Entry, []*flow.Meter) {
	if !hasEgressQoS(p) {
		return nil, nil
	}
	return one(p.egressLimited(l)), []*flow.Meter{l.meter()}
}

// TrafficControl are the entries of the Pods of a TrafficControl. ReturnPort has those of its
// return port. Without the feature, there are none.
func (p *Pipeline) TrafficControl(tc TrafficControl) (all []*flow.Entry) {
	if !p.c.Features.TrafficControl {
		return nil
	}
	for _, pod := range tc.PodPorts {
		all = append(all, p.controlTraffic(tc, pod)...)
	}
	return all
}

// ReturnPort accepts packets that a TrafficControl has redirected and its engine gives back.
func (p *Pipeline) ReturnPort(port Port) []*flow.Entry {
	if !p.c.Features.TrafficControl {
		return nil
	}
	return one(p.classifyReturn(port))
}

// Tags of Traceflows, which the packet carries in its DSCP: the values for local use (RFC 2474,
// section 6) that Antrea uses.
const (
	FirstTag = 7
	LastTag  = 59
	TagStep  = 4
)

// Traceflow are the entries for packets with a tag. They deliver none of them. An external Node
// has none, because a Traceflow begins at a Pod.
func (p *Pipeline) Traceflow(tag uint8) []*flow.Entry {
	if isExternal(p) {
		return nil
	}
	return p.each(func(f Family) []*flow.Entry { return append(p.stateOfTraced(f, tag), p.outputTraced(f, tag)...) })
}

func one(e *flow.Entry) []*flow.Entry { return []*flow.Entry{e} }

func concat(lists ...[]*flow.Entry) (all []*flow.Entry) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}
