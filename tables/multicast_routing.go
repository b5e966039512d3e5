package tables

import (
	"net/netip"

	"github.com/antrail/antrail/flow"
)

// MulticastRouting copies a packet to the members of its group: ports of Pods, other Nodes, and
// the gateway. Membership reports of Pods and of other Nodes go to the agent, which keeps the
// groups. It exists with Multicast.
//
// Reads:  PktSourceField, in_port, the destination.
// Writes: TargetOFPortField, OutputRegField, tun_dst, in the buckets of groups.
// Next:   the ingress tables for a Pod or the gateway, MulticastOutput for another Node. A group
// without members leaves by the gateway. Table-miss: the ingress tables.

// FirstMulticastGroup is the first id of groups with multicast receivers. Those of Services are
// below.
const FirstMulticastGroup = 1 << 24

// Groups that always exist: all Pods, which get queries about their memberships, and all other
// Nodes, which get reports of them.
const (
	GroupMulticastPods  = FirstMulticastGroup - 2
	groupMulticastNodes = FirstMulticastGroup - 1
)

// reportsToAgent sends membership reports to the agent.
func (p *Pipeline) reportsToAgent() (all []*flow.Entry) {
	senders := []Mark{FromPodRegMark}
	if hasTunnel(p) {
		senders = append(senders, FromTunnelRegMark)
	}
	for _, from := range senders {
		all = append(all, p.entry(forMulticast, tableMulticastRouting, priorityHigh, match(igmp, from.Is()),
			flow.MeterAction{ID: meterIGMP}, p.packetIn(PacketInIGMP)))
	}
	return all
}

// reportsToNodes sends the agent's reports to all Nodes.
func (p *Pipeline) reportsToNodes() *flow.Entry {
	return p.entry(forMulticast, tableMulticastRouting, priorityHigh, match(igmp, inPort(flow.PortController)),
		flow.GroupAction{ID: groupMulticastNodes})
}

// multicastOut sends packets of groups without members to the Node.
func (p *Pipeline) multicastOut() *flow.Entry {
	return p.entry(forMulticast, tableMulticastRouting, priorityLow, match(IPv4.ip()), flow.Output{Port: p.c.Gateway.No})
}

// multicastTo sends packets of a group to its members.
func (p *Pipeline) multicastTo(g MulticastGroup) *flow.Entry {
	return p.entry(forMulticast, tableMulticastRouting, priorityNormal, match(dst(g.Addr)), flow.GroupAction{ID: g.ID})
}

// receivers is a group with a copy for each port and each Node.
func (p *Pipeline) receivers(id uint32, ports []uint32, nodes []netip.Addr) *flow.Group {
	g := &flow.Group{ID: id, Type: flow.GroupAll}
	add := func(port uint32, next uint8, more ...flow.Action) {
		actions := append([]flow.Action{OutputToOFPortRegMark.Set(), TargetOFPortField.Set(uint64(port))}, more...)
		g.Buckets = append(g.Buckets, flow.Bucket{ID: uint32(len(g.Buckets)), Actions: append(actions, resubmit(next))})
	}
	for _, port := range ports {
		add(port, p.first(stageMulticastIngress))
	}
	for _, node := range nodes {
		add(p.c.Tunnel.No, p.id(tableMulticastOutput), setTunDst(node))
	}
	return g
}
