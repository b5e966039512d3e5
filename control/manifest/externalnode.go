package manifest

import (
	"net/netip"
	"slices"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/tables"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// External Nodes are machines without Pods, whose processes policies protect. A policy chooses
// ExternalEntities. Antrea's controller makes one of each ExternalNode, and so does this package.
// With the gate ExternalNode, a NodeConfig names the ports of the machine's card and of its own
// network. Everything that such a Node would not enforce is refused.

func decodeExternalEntity(c *check, in *externalEntityManifest) cluster.Object {
	e := &cluster.ExternalEntity{Pod: cluster.Pod{Meta: c.meta}, ExternalNode: in.Spec.ExternalNode}
	for i, end := range in.Spec.Endpoints {
		at := specAt.Child("endpoints").Index(i).Child("ip")
		ip := c.addr(at, end.IP)
		c.remote(at, ip)
		e.IPs = append(e.IPs, ip)
	}
	for i, p := range in.Spec.Ports {
		at := specAt.Child("ports").Index(i)
		if p.Name != "" {
			c.all(at.Child("name"), Clip(p.Name), validation.IsValidPortName(p.Name))
		}
		e.Ports = append(e.Ports, cluster.ContainerPort{
			Name: p.Name, Number: c.port(at.Child("port"), p.Port), Protocol: c.protocol(at.Child("protocol"), p.Protocol),
		})
	}
	return e
}

// decodeExternalNode reads an ExternalNode as the ExternalEntity of its interface. The interface must
// have no name, because Antrea would derive another name for the entity from it.
func decodeExternalNode(c *check, in *externalNodeManifest) cluster.Object {
	at := specAt.Child("interfaces")
	e := &cluster.ExternalEntity{Pod: cluster.Pod{Meta: c.meta}, ExternalNode: in.Name}
	if len(in.Spec.Interfaces) != 1 {
		c.invalid(at, len(in.Spec.Interfaces), "must be one interface; an ExternalEntity is for another one")
		return e
	}
	link := &in.Spec.Interfaces[0]
	if link.Name != "" {
		c.forbidden(at.Index(0).Child("name"), "spec.ports of the NodeConfig names links")
	}
	if len(link.IPs) == 0 {
		c.required(at.Index(0).Child("ips"), "policies know the interface by its addresses")
	}
	for i, text := range link.IPs {
		at := at.Index(0).Child("ips").Index(i)
		ip := c.addr(at, text)
		c.remote(at, ip)
		e.IPs = append(e.IPs, ip)
	}
	return e
}

// bypassManifest is an item of policyBypassRules, as in the configuration of Antrea's agent.
type bypassManifest struct {
	Direction string `json:"direction"`
	Protocol  string `json:"protocol"`
	CIDR      string `json:"cidr"`
	Port      int32  `json:"port"`
}

// bypassProtocols are the protocols of a bypass.
var bypassProtocols = map[string]uint8{"tcp": uint8(cluster.TCP), "udp": uint8(cluster.UDP), "icmp": 1, "ip": 0}

func decodeBypasses(c *check, in []bypassManifest) (all []tables.Bypass) {
	for i, b := range in {
		at := specAt.Child("policyBypassRules").Index(i)
		out := tables.Bypass{Proto: bypassProtocols[b.Protocol], Peer: c.prefix(at.Child("cidr"), b.CIDR)}
		oneOf(c, at.Child("protocol"), b.Protocol, "tcp", "udp", "icmp", "ip")
		if oneOf(c, at.Child("direction"), b.Direction, "ingress", "egress") == "egress" {
			out.Direction = tables.Egress
		}
		if out.Peer.IsValid() && !out.Peer.Addr().Is4() {
			c.invalid(at.Child("cidr"), b.CIDR, "policies of an external Node are of IPv4")
		}
		ported := b.Protocol == "tcp" || b.Protocol == "udp"
		if ported {
			out.Port = c.port(at.Child("port"), b.Port)
		} else if b.Port != 0 {
			c.forbidden(at.Child("port"), "only tcp and udp have ports")
		}
		all = append(all, out)
	}
	return all
}

// checkExternal checks the requirements of the gate, and refuses fields that need the gate.
func checkExternal(c *check, n *cluster.NodeConfig) {
	on, at := n.External(), specAt.Child("ports")
	gate := specAt.Child("features").Key("ExternalNode")
	if !on {
		const needs = "needs features: {ExternalNode: true}"
		for i := range n.Ports {
			if p := &n.Ports[i]; p.Uplink != "" || p.Entity != (cluster.Name{}) {
				c.invalid(at.Index(i), p.Name, needs)
			}
		}
		if len(n.Bypasses) > 0 {
			c.invalid(specAt.Child("policyBypassRules"), len(n.Bypasses), needs)
		}
		return
	}
	if !n.Feature("AntreaPolicy", true) {
		c.invalid(gate, true, "needs AntreaPolicy: no other policy chooses ExternalEntities")
	}
	for name, set := range n.Features {
		if set && name != "ExternalNode" && name != "AntreaPolicy" && featureGates[name] == gateSwitches {
			c.invalid(gate, true, "has no effect together with %s: an external Node has no Pods", name)
		}
	}
	if n.Tunnel != (cluster.TunnelPort{}) {
		c.forbidden(specAt.Child("tunnel"), "an external Node has no tunnel")
	}
	if len(n.NodePortAddresses)+len(n.ServiceCIDRs) > 0 || n.ProxyAll {
		c.invalid(gate, true, "has no Services: remove serviceCIDRs, nodePortAddresses and proxyAll")
	}
	checkLinks(c, at, n.Ports)
}

// checkLinks checks that each card of an external Node has one port to the machine.
func checkLinks(c *check, at *field.Path, ports []cluster.SwitchPort) {
	cards := map[string]int{} // number of ports that lead to each card
	for _, p := range ports {
		if p.Role == cluster.RoleUplink {
			cards[p.Name] = 0
		}
	}
	for i := range ports {
		p, at := &ports[i], at.Index(i)
		isHost := p.Role == cluster.RoleHost
		switch _, known := cards[p.Uplink]; {
		case p.Role != cluster.RoleUplink && !isHost:
			c.invalid(at.Child("role"), Clip(string(p.Role)), "must be uplink or host: an external Node has no other ports")
		case p.Pod != (cluster.Name{}) || p.VLAN != 0:
			c.forbidden(at, "an external Node has neither Pods nor VLANs")
		case !isHost && (p.Uplink != "" || p.Entity != (cluster.Name{})):
			c.forbidden(at, "uplink and externalEntity are of ports with role: host")
		case isHost && !known:
			c.invalid(at.Child("uplink"), Clip(p.Uplink), "is not a port with role: uplink")
		case isHost && p.Entity == (cluster.Name{}):
			c.required(at.Child("externalEntity"), "policies know the machine by it")
		}
		if isHost {
			cards[p.Uplink]++
		}
	}
	for i, p := range ports {
		if n := cards[p.Name]; p.Role == cluster.RoleUplink && n != 1 {
			c.invalid(at.Index(i).Child("name"), p.Name, "has %d ports with role: host and uplink: %s, and needs one", n, p.Name)
		}
	}
}

// RefuseIPv6 is the reason why an external Node refuses an ExternalEntity; "" if it does not. The
// policies of such a Node do not match IPv6.
func RefuseIPv6(ips []netip.Addr) string {
	if slices.ContainsFunc(ips, netip.Addr.Is6) {
		return "it has an IPv6 address, and policies of an external Node are of IPv4: IPv6 would pass by them"
	}
	return ""
}
