package tables

import (
	"net/netip"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// ARPResponder answers for the gateways of other Nodes with the Global Virtual MAC, so that the
// Node's kernel can send to their Pods. It switches all other ARP as an ordinary switch does.
// With FlexibleIPAM, it also answers for this Node's gateway. In mode networkPolicyOnly, it
// answers for every address, because all packets are routed there.
//
// Reads:  arp_op, arp_tpa.
// Writes: the reply.
// Next:   back where it came from, or NORMAL. Table-miss: drop.

// ARP operations (RFC 826).
const (
	arpRequest = 1
	arpReply   = 2
)

func (p *Pipeline) arpReplyFor(gateway netip.Addr, its [6]byte) *flow.Entry {
	mac, addr := layout.MACValue(its), flow.ValueOfAddr(gateway)
	return p.entry(forPods, tableARPResponder, priorityNormal,
		match(arp, arpAddr(flow.ArpTPA, gateway), layout.Exact(flow.ArpOp, arpRequest)),
		move(flow.EthSrc, flow.EthDst),
		flow.SetField{Field: flow.EthSrc, Value: mac, Mask: flow.Ones(48)},
		flow.SetField{Field: flow.ArpOp, Value: flow.Value{Lo: arpReply}, Mask: flow.Ones(16)},
		move(flow.ArpSHA, flow.ArpTHA),
		flow.SetField{Field: flow.ArpSHA, Value: mac, Mask: flow.Ones(48)},
		move(flow.ArpSPA, flow.ArpTPA),
		flow.SetField{Field: flow.ArpSPA, Value: addr, Mask: flow.Ones(32)},
		flow.OutputInPort{})
}

// arpReplyForAll answers for every address, in mode networkPolicyOnly.
func (p *Pipeline) arpReplyForAll() []*flow.Entry {
	if !isPolicyOnly(p) || !hasIPv4(p) {
		return nil
	}
	mac := layout.MACValue(GlobalVirtualMAC)
	return one(p.entry(forPods, tableARPResponder, priorityNormal, match(arp, layout.Exact(flow.ArpOp, arpRequest)),
		move(flow.EthSrc, flow.EthDst),
		flow.SetField{Field: flow.EthSrc, Value: mac, Mask: flow.Ones(48)},
		flow.SetField{Field: flow.ArpOp, Value: flow.Value{Lo: arpReply}, Mask: flow.Ones(16)},
		move(flow.ArpSHA, flow.ArpTHA),
		flow.SetField{Field: flow.ArpSHA, Value: mac, Mask: flow.Ones(48)},
		flow.Move{Src: flow.FieldByID(flow.ArpTPA).Full(), Dst: SwapField.Subfield},
		move(flow.ArpSPA, flow.ArpTPA),
		flow.Move{Src: SwapField.Subfield, Dst: flow.FieldByID(flow.ArpSPA).Full()},
		flow.OutputInPort{}))
}

func (p *Pipeline) arpNormal() []*flow.Entry {
	if !hasIPv4(p) {
		return nil
	}
	return []*flow.Entry{p.entry(forPods, tableARPResponder, priorityLow, match(arp), flow.Normal{})}
}
