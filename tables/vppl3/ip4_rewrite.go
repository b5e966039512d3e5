package vppl3

import (
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// ip4-rewrite writes the MAC addresses of the pod's link and decrements the TTL. The switch is a
// router, also between pods of one Node.
//
// If a policy names the pod, this table looks up its session for acl-plugin-out-ip4-fa. The
// lookup is the last one, because ct_state belongs to one zone.
//
// Reads:  TxSwIfIndex.
// Writes: the MAC addresses, the TTL; ct_state.
// Next:   acl-plugin-out-ip4-fa. Table-miss: drop.

func rewrite(n *layout.Node) (all []layout.Entry) {
	for _, p := range n.Pods {
		var next flow.Action = goTo(tableACLOut)
		if isReferenced(n, p.IP()) {
			next = &flow.CT{Zone: aclZone, Table: tableACLOut}
		}
		all = append(all, entry("V-16", "the neighbour "+p.Port.Name, tableRewrite, priorityNormal,
			layout.Match(layout.IPv4, txField.Is(uint64(p.Port.No))),
			layout.SetMAC(flow.EthDst, p.Port.MAC), layout.SetMAC(flow.EthSrc, p.Link), flow.DecTTL{}, next))
	}
	return all
}
