package workload

import (
	"net/netip"
	"slices"

	"github.com/antrail/antrail/bench/testbed"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/lab"
	"github.com/antrail/antrail/tables"
)

// Antrea's program where it has other tables: on a machine without pods, and beside another CNI.
// Neither has a policy here, nor a Service.

// externalLoad is an external Node. The sender is outside its card, and the receiver is its own
// network.
func externalLoad() ProgramLoad {
	p := tables.New(tables.Config{Features: tables.Features{AntreaPolicy: true, ExternalNode: true}, PodCIDRs: []netip.Prefix{podCIDR}})
	pair := tables.ExternalLink{Uplink: portOf(testbed.Sender()), Host: portOf(testbed.Receiver())}
	return ProgramLoad{"external Node", programOf(p, p.ExternalLink(pair)), []*Packets{KnownConnection(), NewConnections()}}
}

// policyOnlyLoad is a Node beside another CNI. Pods send to the Global Virtual MAC.
func policyOnlyLoad() ProgramLoad {
	p := tables.New(tables.Config{
		Features: tables.Features{AntreaPolicy: true, Proxy: true}, Encap: tables.PolicyOnly, PodCIDRs: []netip.Prefix{podCIDR},
		Gateway: tables.Port{Name: "antrea-gw0", No: 2, MAC: lab.TwoNodes().Nodes[0].GatewayMAC}, GatewayIPs: []netip.Addr{gateway},
	})
	var entries []*flow.Entry
	for _, pod := range []lab.Pod{testbed.Sender(), testbed.Receiver()} {
		entries = append(entries, p.Pod(tables.Pod{Port: portOf(pod), IPs: []netip.Addr{pod.Address.V4}})...)
	}
	kinds := []*Packets{KnownConnection(), NewConnections()}
	virtual := [6]byte{0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff}
	for _, k := range kinds {
		k.Frame = toLink(k.Frame, virtual)
		for i := range k.Answers {
			k.Answers[i] = toLink(k.Answers[i], virtual)
		}
	}
	return ProgramLoad{"networkPolicyOnly", programOf(p, entries), kinds}
}

// programOf is what a switch with both pods runs: the entries that are always there, and more.
func programOf(p *tables.Pipeline, more []*flow.Entry) *flow.Program {
	names := p.Names()
	for _, pod := range []lab.Pod{testbed.Sender(), testbed.Receiver()} {
		names.SetPort(pod.OFPort, pod.Name)
	}
	return &flow.Program{
		Names: names, First: p.First(), Entries: slices.Concat(p.Static(), more), Groups: p.StaticGroups(), Meters: p.Meters(),
	}
}

func portOf(pod lab.Pod) tables.Port {
	return tables.Port{Name: pod.Name, No: pod.OFPort, MAC: pod.MAC}
}
