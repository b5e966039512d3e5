package manifest

import (
	"net/netip"
	"slices"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/tables"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Pods of the underlay: the gate AntreaIPAM. The NodeConfig names the ports of the Node's card and of
// its own network, and the VLANs of Pods. Everything that would not be enforced for such Pods is
// refused.

// lastVLAN is the highest VLAN id of a frame: IEEE 802.1Q, table 9-2.
const lastVLAN = 4094

// checkUnderlay checks the requirements of the gate, and refuses fields that need the gate.
func checkUnderlay(c *check, n *cluster.NodeConfig) {
	if n.External() {
		return
	}
	on, at := n.Feature("AntreaIPAM", false), specAt.Child("ports")
	seen := map[cluster.PortRole]bool{}
	for i := range n.Ports {
		checkPortOfUnderlay(c, at.Index(i), &n.Ports[i], on)
		if role := n.Ports[i].Role; role != "" && seen[role] {
			c.faults = append(c.faults, field.Duplicate(at.Index(i).Child("role"), role))
		}
		seen[n.Ports[i].Role] = true
	}
	if !on {
		return
	}
	gate := specAt.Child("features").Key("AntreaIPAM")
	for _, role := range []cluster.PortRole{cluster.RoleUplink, cluster.RoleBridge} {
		if !seen[role] {
			c.invalid(gate, true, "needs a port in spec.ports with role: %s", role)
		}
	}
	if n.Encap != tables.NoEncap {
		c.invalid(gate, true, "needs trafficEncapMode noEncap: the underlay routes Pods' addresses")
	}
	if slices.ContainsFunc(n.Gateway.IPs, netip.Addr.Is6) {
		c.invalid(gate, true, "is of IPv4 only, and spec.gateway.ips has an IPv6 address")
	}
	for _, other := range []string{"Egress", "L7NetworkPolicy", "TrafficControl"} {
		if n.Feature(other, true) {
			c.invalid(gate, true, "needs features: {%s: false}: it does not reach what Pods of the underlay send by the card", other)
		}
	}
}

// checkPortOfUnderlay checks the role and the VLAN of a port.
func checkPortOfUnderlay(c *check, at *field.Path, p *cluster.SwitchPort, on bool) {
	const needs = "needs features: {AntreaIPAM: true}"
	isPod := p.Pod != cluster.Name{}
	switch role := at.Child("role"); {
	case p.Role == "":
	case p.Role != cluster.RoleUplink && p.Role != cluster.RoleBridge:
		c.invalid(role, Clip(string(p.Role)), "must be uplink or bridge")
	case isPod:
		c.invalid(role, string(p.Role), "is of a port without a pod")
	case !on:
		c.invalid(role, string(p.Role), needs)
	case p.Role == cluster.RoleBridge && p.MAC == [6]byte{}:
		c.faults = append(c.faults, field.Required(at.Child("mac"), "that of the Node's own interface"))
	}
	switch vlan := at.Child("vlan"); {
	case p.VLAN == 0:
	case p.VLAN > lastVLAN:
		c.invalid(vlan, p.VLAN, "must be between 1 and %d, inclusive", lastVLAN)
	case !isPod:
		c.invalid(vlan, p.VLAN, "is of a Pod's port")
	case !on:
		c.invalid(vlan, p.VLAN, needs)
	}
}
