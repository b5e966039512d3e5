package manifest

import (
	"net/netip"
	"slices"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/tables"
)

// Mode networkPolicyOnly: another CNI gives Pods their interfaces, addresses and routes, and antrail
// enforces policies. Everything that would not be enforced there is refused.

// checkPolicyOnly refuses features that the other CNI would have to provide.
func checkPolicyOnly(c *check, n *cluster.NodeConfig) {
	if n.Encap != tables.PolicyOnly {
		return
	}
	mode := specAt.Child("trafficEncapMode")
	refuse := func(format string, args ...any) { c.invalid(mode, n.Encap.String(), format, args...) }
	for _, gate := range []string{"Egress", "L7NetworkPolicy", "TrafficControl"} {
		if n.Feature(gate, true) {
			refuse("needs features: {%s: false}: another CNI routes what Pods send", gate)
		}
	}
	if n.Feature("AntreaIPAM", false) {
		refuse("has no effect together with AntreaIPAM: another CNI gives Pods their addresses")
	}
	if n.ProxyAll || len(n.NodePortAddresses) > 0 {
		refuse("serves no NodePorts: remove proxyAll and nodePortAddresses")
	}
	if slices.ContainsFunc(n.Gateway.IPs, netip.Addr.Is6) {
		refuse("is of IPv4 only, and spec.gateway.ips has an IPv6 address")
	}
}
