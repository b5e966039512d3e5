package manifest

import (
	"cmp"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/tables"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Nodes, Namespaces and Pods as the API server publishes them, and antrail's own NodeConfig.

var (
	specAt   = field.NewPath("spec")
	statusAt = field.NewPath("status")
)

func decodeNode(c *check, in *corev1.Node) cluster.Object {
	cidrs, at := in.Spec.PodCIDRs, specAt.Child("podCIDRs")
	n := &cluster.Node{Meta: c.meta, PodCIDRs: c.prefixes(at, cidrs)}
	if len(cidrs) == 0 && in.Spec.PodCIDR != "" {
		cidrs, at = []string{in.Spec.PodCIDR}, specAt.Child("podCIDR")
		n.PodCIDRs = []netip.Prefix{c.prefix(at, in.Spec.PodCIDR)}
	}
	if len(n.PodCIDRs) > 2 || len(n.PodCIDRs) == 2 && n.PodCIDRs[0].Addr().Is4() == n.PodCIDRs[1].Addr().Is4() {
		c.invalid(at, len(cidrs), "may hold at most one prefix of each IP family")
	}
	if in.Spec.PodCIDR != "" && in.Spec.PodCIDR != cidrs[0] {
		c.invalid(specAt.Child("podCIDR"), Clip(in.Spec.PodCIDR), "must be the first of podCIDRs")
	}
	n.Addresses = decodeNodeAddresses(c, in.Status.Addresses)
	return n
}

// decodeNodeAddresses chooses one address of each family: an InternalIP, or else an ExternalIP. It
// ignores host names.
func decodeNodeAddresses(c *check, in []corev1.NodeAddress) []netip.Addr {
	var out []netip.Addr
	for _, wanted := range []corev1.NodeAddressType{corev1.NodeInternalIP, corev1.NodeExternalIP} {
		for i, a := range in {
			if a.Type != wanted {
				continue
			}
			addr := c.addr(statusAt.Child("addresses").Index(i).Child("address"), a.Address)
			sameFamily := func(o netip.Addr) bool { return o.Is4() == addr.Is4() }
			if addr.IsValid() && !slices.ContainsFunc(out, sameFamily) {
				out = append(out, addr)
			}
		}
	}
	return out
}

// logPoliciesAnnotation is Antrea's. On a Namespace, "true" logs the decisions of its K8s
// NetworkPolicies.
const logPoliciesAnnotation = "networkpolicy.antrea.io/enable-logging"

func decodeNamespace(c *check, in *corev1.Namespace) cluster.Object {
	labels := maps.Clone(in.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[cluster.NamespaceNameLabel] = in.Name
	ns := &cluster.Namespace{
		Meta:        c.meta,
		Terminating: in.DeletionTimestamp != nil || in.Status.Phase == corev1.NamespaceTerminating,
		LogPolicies: strings.EqualFold(in.Annotations[logPoliciesAnnotation], "true"),
	}
	ns.Labels = labels
	return ns
}

// mirrorAnnotation is on the API's mirror of a static Pod. It is the UID by which the kubelet, and so
// the CNI plugin, knows the Pod.
const mirrorAnnotation = "kubernetes.io/config.mirror"

func decodePod(c *check, in *corev1.Pod) cluster.Object {
	p := &cluster.Pod{
		Meta:           c.meta,
		NodeName:       in.Spec.NodeName,
		HostNetwork:    in.Spec.HostNetwork,
		ServiceAccount: in.Spec.ServiceAccountName,
		Phase:          cluster.PodPhase(in.Status.Phase),
		Deleting:       in.DeletionTimestamp != nil,
		IPs:            c.onePerFamily(statusAt.Child("podIPs"), podIPs(&in.Status)),
		Ports:          containerPorts(c, &in.Spec),
		UID:            cmp.Or(in.Annotations[mirrorAnnotation], string(in.UID)),
		Attach:         in.Annotations[cluster.AttachAnnotation],
	}
	p.ServiceAccount = cmp.Or(p.ServiceAccount, "default")
	for _, cond := range in.Status.Conditions {
		if cond.Type == corev1.PodReady {
			p.Ready = cond.Status == corev1.ConditionTrue
		}
	}
	if in.Status.PodIP != "" && len(p.IPs) > 0 && c.addr(statusAt.Child("podIP"), in.Status.PodIP) != p.IPs[0] {
		c.invalid(statusAt.Child("podIP"), Clip(in.Status.PodIP), "must be the first of podIPs")
	}
	return p
}

func podIPs(in *corev1.PodStatus) []string {
	if len(in.PodIPs) == 0 && in.PodIP != "" {
		return []string{in.PodIP}
	}
	var ips []string
	for _, ip := range in.PodIPs {
		ips = append(ips, ip.IP)
	}
	return ips
}

// containerPorts returns the ports of the containers, and of init containers that keep running.
func containerPorts(c *check, in *corev1.PodSpec) []cluster.ContainerPort {
	ports := portsOf(c, specAt.Child("containers"), in.Containers)
	for i, init := range in.InitContainers {
		if unless(init.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways {
			ports = append(ports, portsOf(c, specAt.Child("initContainers"), in.InitContainers[i:i+1])...)
		}
	}
	return ports
}

func portsOf(c *check, at *field.Path, in []corev1.Container) []cluster.ContainerPort {
	var out []cluster.ContainerPort
	for i, container := range in {
		for j, p := range container.Ports {
			at := at.Index(i).Child("ports").Index(j)
			if p.Name != "" {
				c.all(at.Child("name"), Clip(p.Name), validation.IsValidPortName(p.Name))
			}
			out = append(out, cluster.ContainerPort{
				Name:     p.Name,
				Number:   c.port(at.Child("containerPort"), p.ContainerPort),
				Protocol: c.protocol(at.Child("protocol"), p.Protocol),
			})
		}
	}
	return out
}

// nodeConfigManifest is a NodeConfig of antrail.io/v1alpha1 as written.
type nodeConfigManifest struct {
	objectManifest `json:",inline"`

	Spec struct {
		Gateway struct {
			Name   string   `json:"name"`
			OFPort uint32   `json:"ofPort"`
			MAC    string   `json:"mac"`
			IPs    []string `json:"ips"`
		} `json:"gateway"`
		Tunnel struct {
			Name   string `json:"name"`
			OFPort uint32 `json:"ofPort"`
			Type   string `json:"type"`
		} `json:"tunnel"`
		TransportIPs            []string             `json:"transportIPs"`
		TransportCIDRs          []string             `json:"transportCIDRs"`
		TrafficEncapMode        string               `json:"trafficEncapMode"`
		ServiceCIDRs            []string             `json:"serviceCIDRs"`
		NodePortAddresses       []string             `json:"nodePortAddresses"`
		EgressExceptCIDRs       []string             `json:"egressExceptCIDRs"`
		ProxyAll                bool                 `json:"proxyAll"`
		DefaultLoadBalancerMode string               `json:"defaultLoadBalancerMode"`
		Features                map[string]bool      `json:"features"`
		PacketInRate            uint32               `json:"packetInRate"`
		Pipeline                string               `json:"pipeline"`
		Ports                   []switchPortManifest `json:"ports"`
		PolicyBypassRules       []bypassManifest     `json:"policyBypassRules"`
	} `json:"spec"`
}

type switchPortManifest struct {
	Name   string `json:"name"`
	OFPort uint32 `json:"ofPort"`
	Pod    string `json:"pod"` // namespace/name
	MAC    string `json:"mac"`
	Role   string `json:"role"`
	VLAN   uint16 `json:"vlan"`
	Uplink string `json:"uplink"`         // name of a port
	Entity string `json:"externalEntity"` // namespace/name
}

// maxOFPort is the highest port number: OpenFlow 1.5, 7.2.1, OFPP_MAX.
const maxOFPort = 0xffffff00

func decodeNodeConfig(c *check, in *nodeConfigManifest) cluster.Object {
	spec := &in.Spec
	n := &cluster.NodeConfig{
		Meta:              c.meta,
		Gateway:           decodeGateway(c, in),
		Tunnel:            decodeTunnel(c, in),
		TransportIPs:      c.onePerFamily(specAt.Child("transportIPs"), spec.TransportIPs),
		TransportCIDRs:    c.prefixes(specAt.Child("transportCIDRs"), spec.TransportCIDRs),
		Encap:             decodeEncapMode(c, in),
		ServiceCIDRs:      c.prefixes(specAt.Child("serviceCIDRs"), spec.ServiceCIDRs),
		NodePortAddresses: c.nodePortAddresses(specAt.Child("nodePortAddresses"), spec.NodePortAddresses),
		EgressExceptCIDRs: c.prefixes(specAt.Child("egressExceptCIDRs"), spec.EgressExceptCIDRs),
		ProxyAll:          spec.ProxyAll,
		Features:          c.features(spec.Features),
		DefaultDSR:        spec.DefaultLoadBalancerMode == "dsr",
		PacketInRate:      spec.PacketInRate,
	}
	if spec.DefaultLoadBalancerMode != "" {
		oneOf(c, specAt.Child("defaultLoadBalancerMode"), spec.DefaultLoadBalancerMode, "nat", "dsr")
	}
	if fault := DSRFault(spec.DefaultLoadBalancerMode, spec.Features); fault != "" {
		c.invalid(specAt.Child("defaultLoadBalancerMode"), spec.DefaultLoadBalancerMode, "%s", fault)
	}
	checkMulticast(c, n)
	release, err := tables.ParseRelease(spec.Pipeline)
	if err != nil {
		c.invalid(specAt.Child("pipeline"), Clip(spec.Pipeline), "must be v1.15 or v2")
	}
	n.Release = release
	n.Ports = decodeSwitchPorts(c, n, spec.Ports)
	checkUnderlay(c, n)
	n.Bypasses = decodeBypasses(c, spec.PolicyBypassRules)
	checkExternal(c, n)
	checkPolicyOnly(c, n)
	return n
}

// decodeGateway reads the gateway. An external Node has none.
func decodeGateway(c *check, in *nodeConfigManifest) cluster.GatewayPort {
	g, at := &in.Spec.Gateway, specAt.Child("gateway")
	if in.Spec.Features["ExternalNode"] {
		if g.Name != "" || g.OFPort != 0 || g.MAC != "" || len(g.IPs) > 0 {
			c.forbidden(at, "an external Node has no gateway")
		}
		return cluster.GatewayPort{}
	}
	return cluster.GatewayPort{
		Name: g.Name, OFPort: c.ofPort(at, g.OFPort), MAC: c.mac(at.Child("mac"), g.MAC), IPs: c.onePerFamily(at.Child("ips"), g.IPs),
	}
}

// checkMulticast refuses the gate Multicast if it would have no effect.
func checkMulticast(c *check, n *cluster.NodeConfig) {
	at := specAt.Child("features").Key("Multicast")
	if fault := MulticastFault(n.Encap, n.Features); fault != "" {
		c.invalid(at, true, "%s", fault)
	}
	if n.Features["Multicast"] && !slices.ContainsFunc(n.Gateway.IPs, netip.Addr.Is4) {
		c.invalid(at, true, "needs an IPv4 address in spec.gateway.ips: groups are of IPv4, and queries come from the gateway")
	}
}

// nodePortAddresses refuses ::1. The kernel cannot send from it to another link; IPv4 has
// route_localnet for that.
func (c *check) nodePortAddresses(at *field.Path, in []string) []netip.Addr {
	all := c.addrs(at, in)
	for i, a := range all {
		if a == netip.IPv6Loopback() {
			c.invalid(at.Index(i), in[i], "NodePorts cannot be served at the IPv6 loopback address")
		}
	}
	return all
}

// decodeEncapMode checks that modes with a tunnel have one and other modes have none.
func decodeEncapMode(c *check, in *nodeConfigManifest) tables.EncapMode {
	spec, at := &in.Spec, specAt.Child("trafficEncapMode")
	mode, err := tables.EncapModeNamed(spec.TrafficEncapMode)
	switch {
	case err != nil:
		c.invalid(at, Clip(spec.TrafficEncapMode), "must be encap, noEncap, hybrid or networkPolicyOnly")
	case mode == tables.Hybrid && len(spec.TransportCIDRs) == 0:
		c.invalid(at, spec.TrafficEncapMode, "needs transportCIDRs, where Nodes are reached without a tunnel")
	case mode == tables.Hybrid && spec.Tunnel.OFPort == 0:
		c.invalid(at, spec.TrafficEncapMode, "needs a tunnel")
	case !mode.HasTunnel() && spec.Tunnel.OFPort != 0:
		c.invalid(at, spec.TrafficEncapMode, "has no tunnel, but spec.tunnel is given")
	}
	return mode
}

func decodeTunnel(c *check, in *nodeConfigManifest) cluster.TunnelPort {
	t, at := in.Spec.Tunnel, specAt.Child("tunnel")
	if t.Name == "" && t.OFPort == 0 && t.Type == "" {
		return cluster.TunnelPort{} // no tunnel
	}
	if t.Type != "" {
		oneOf(c, at.Child("type"), t.Type, "geneve", "vxlan", "gre")
	}
	return cluster.TunnelPort{Name: t.Name, OFPort: c.ofPort(at, t.OFPort), Type: t.Type}
}

// decodeSwitchPorts reads the ports. No number, name or Pod may occur twice, gateway and tunnel
// included.
func decodeSwitchPorts(c *check, n *cluster.NodeConfig, in []switchPortManifest) []cluster.SwitchPort {
	seen := map[any]bool{n.Gateway.OFPort: true, n.Gateway.Name: true, n.Tunnel.OFPort: true, n.Tunnel.Name: true}
	once := func(at *field.Path, value any) {
		if seen[value] {
			c.faults = append(c.faults, field.Duplicate(at, value))
		}
		seen[value] = true
	}
	var out []cluster.SwitchPort
	for i, p := range in {
		at := specAt.Child("ports").Index(i)
		port := cluster.SwitchPort{Name: p.Name, OFPort: c.ofPort(at, p.OFPort), Role: cluster.PortRole(p.Role), VLAN: p.VLAN, Uplink: p.Uplink}
		once(at.Child("ofPort"), p.OFPort)
		once(at.Child("name"), p.Name)
		if p.Pod != "" {
			port.Pod = c.podName(at.Child("pod"), p.Pod)
			once(at.Child("pod"), port.Pod)
		}
		if p.Entity != "" {
			port.Entity = c.podName(at.Child("externalEntity"), p.Entity)
			once(at.Child("externalEntity"), entityName(port.Entity))
		}
		if p.Pod != "" || p.MAC != "" {
			port.MAC = c.mac(at.Child("mac"), p.MAC)
		}
		out = append(out, port)
	}
	return out
}

// entityName is the name of an entity. In the set of seen names, its type distinguishes it from a Pod
// with the same name.
type entityName cluster.Name

func (c *check) ofPort(p *field.Path, n uint32) uint32 {
	if n == 0 || n > maxOFPort {
		c.invalid(p.Child("ofPort"), n, "must be between 1 and %d, inclusive", uint32(maxOFPort))
	}
	return n
}

func (c *check) mac(p *field.Path, s string) (mac [6]byte) {
	parsed, err := net.ParseMAC(s)
	if err != nil || len(parsed) != 6 || parsed[0]&1 != 0 {
		c.invalid(p, Clip(s), "is not the MAC address of one interface")
		return mac
	}
	return [6]byte(parsed)
}

func (c *check) podName(p *field.Path, s string) cluster.Name {
	ns, name, ok := strings.Cut(s, "/")
	if !ok || len(validation.IsDNS1123Label(ns)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		c.invalid(p, Clip(s), "is not namespace/name")
	}
	return cluster.Name{Namespace: ns, Name: name}
}
