package config

import (
	"crypto/sha256"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/manifest"
	"github.com/antrail/antrail/tables"
)

// Objects from the Kubernetes API. The configuration and the Node object then say what a
// NodeConfig says in manifests.

// Kubernetes is the API server of the objects, and settings of the Node's switch that the API
// does not have.
type Kubernetes struct {
	// Kubeconfig is a kubeconfig file.
	Kubeconfig string `json:"kubeconfig,omitempty" default:"the Pod's own service account"`
	// NodeConfig is a file with the NodeConfig of an external Node: its ports and bypass rules.
	// Only with nodeType externalNode, which allows no keys but kubeconfig beside it.
	NodeConfig string `json:"nodeConfig,omitempty"`
	// ServiceCIDRs are the ranges of ClusterIPs.
	ServiceCIDRs []netip.Prefix `json:"serviceCIDRs,omitempty" default:"ServiceCIDRs of the API"`
	// ProxyAll also serves Services to the Node and to the outside. No kube-proxy is needed.
	ProxyAll bool `json:"proxyAll,omitempty"`
	// NodePortAddresses are the addresses where NodePorts are served.
	NodePortAddresses []netip.Addr `json:"nodePortAddresses,omitempty" default:"the Node's and 127.0.0.1"`
	// EgressExceptCIDRs are destinations that no Egress translates.
	EgressExceptCIDRs []netip.Prefix `json:"egressExceptCIDRs,omitempty"`
	// DefaultLoadBalancerMode is one of nat and dsr. The mode dsr needs the feature LoadBalancerModeDSR.
	DefaultLoadBalancerMode string `json:"defaultLoadBalancerMode,omitempty"`
	// Features are Antrea's feature gates by name. A gate without effect is an error.
	Features map[string]bool `json:"features,omitempty"`
	// Pipeline is the release of Antrea whose entries the switch has, v1.15 or v2. With v2, the
	// defaults of gateway.ofPort, tunnel.ofPort and packetInRate are 32769, 32768 and 5000.
	Pipeline string `json:"pipeline,omitempty"`
	// PacketInRate bounds the packets that entries send to the agent.
	PacketInRate uint32 `json:"packetInRate,omitempty" unit:"packets/s"`
	// Status writes the Node's AntreaAgentInfo, and the status of Antrea-native policies if
	// this agent is responsible.
	Status *bool `json:"status,omitempty"`
}

// Source is the Source.File of objects that come from the configuration.
const Source = "configuration"

// fromFiles says whether flow files are given.
func (c *Config) fromFiles() bool { return c.Flows != "" || c.Groups != "" || c.Meters != "" }

// FromObjects says whether the entries come from objects, not from flow files.
func (c *Config) FromObjects() bool { return c.Manifests != "" || c.Kubernetes != nil }

// setDefaults also sets the defaults of the ports, which depend on the pipeline.
func (k *Kubernetes) setDefaults(c *Config) {
	if c.External() {
		orDefault(&k.Status, new(false))
		return
	}
	orDefault(&c.Gateway.MAC, gatewayMAC(c.NodeName))
	orDefault(&k.DefaultLoadBalancerMode, "nat")
	orDefault(&k.Pipeline, tables.V115.String())
	release := k.release()
	orDefault(&k.PacketInRate, release.PacketInRate())
	orDefault(&c.Gateway.OFPort, release.GatewayNo())
	orDefault(&c.Tunnel.OFPort, release.TunnelNo())
	orDefault(&k.Status, new(true))
}

// release is the release of the pipeline. It is v1.15 for a name that check refuses.
func (k *Kubernetes) release() tables.Release {
	r, _ := tables.ParseRelease(k.Pipeline)
	return r
}

func (k *Kubernetes) check(c *Config, f *faults) {
	f.check(c.Manifests == "" && !c.fromFiles(), "kubernetes: not together with manifests, flows, groups and meters")
	if c.External() {
		k.checkExternal(f)
		return
	}
	f.check(k.NodeConfig == "", "kubernetes.nodeConfig: only with nodeType externalNode")
	f.check(len(c.Peers) == 0, "peers: not together with kubernetes, which knows them")
	f.checkPrefixes("kubernetes.serviceCIDRs", k.ServiceCIDRs)
	f.checkPrefixes("kubernetes.egressExceptCIDRs", k.EgressExceptCIDRs)
	for i, a := range k.NodePortAddresses {
		f.check(a.IsValid() && a.Zone() == "" && a != netip.IPv6Loopback(), "kubernetes.nodePortAddresses[%d]: NodePorts cannot be served at %v", i, a)
	}
	switch k.DefaultLoadBalancerMode {
	case "nat", "dsr":
	default:
		f.check(false, "kubernetes.defaultLoadBalancerMode: %q is neither nat nor dsr", k.DefaultLoadBalancerMode)
	}
	_, err := tables.ParseRelease(k.Pipeline)
	f.check(err == nil, "kubernetes.pipeline: %v", err)
	dsr := manifest.DSRFault(k.DefaultLoadBalancerMode, k.Features)
	f.check(dsr == "", "kubernetes.defaultLoadBalancerMode: %s", dsr)
	fault := manifest.MulticastFault(c.Encap(), k.Features)
	f.check(fault == "", "kubernetes.features.Multicast: %s", fault)
	f.check(!k.Features["ExternalNode"], "kubernetes.features.ExternalNode: set nodeType: externalNode, and this feature in its NodeConfig")
	f.check(!k.Features["AntreaIPAM"], "kubernetes.features.AntreaIPAM: only a NodeConfig (manifests) can say which Pods are on the underlay")
	for _, name := range slices.Sorted(maps.Keys(k.Features)) {
		fault := manifest.FeatureFault(name, k.Features[name])
		f.check(fault == "", "kubernetes.features.%s: %s", name, fault)
	}
}

// files are the files that the section names.
func (k *Kubernetes) files() []*string { return []*string{&k.Kubeconfig, &k.NodeConfig} }

// checkExternal refuses settings that an external Node has in its NodeConfig.
func (k *Kubernetes) checkExternal(f *faults) {
	f.check(k.NodeConfig != "", "kubernetes.nodeConfig: missing: a file with the NodeConfig of this external Node")
	rest := *k
	rest.Kubeconfig, rest.NodeConfig, rest.Status = "", "", nil
	f.check(reflect.DeepEqual(rest, Kubernetes{}), "kubernetes: an external Node takes kubeconfig, nodeConfig and status; the rest is in its NodeConfig")
	f.check(!*k.Status, "kubernetes.status: true: an external Node has no AntreaAgentInfo")
}

func (f *faults) checkPrefixes(what string, all []netip.Prefix) {
	for i, p := range all {
		f.check(p.IsValid() && !p.Addr().Is4In6() && p == p.Masked(), "%s[%d]: %v is not a range of addresses (CIDR)", what, i, p)
	}
}

// checkPodPort checks the Pod of a port. Only with kubernetes the configuration names it.
func (c *Config) checkPodPort(f *faults, who string, p *Port) {
	if c.Program != "" {
		f.check(p.Pod == "", "%s.pod: only with kubernetes", who)
		return
	}
	if p.Program != "" {
		c.checkBesidePort(f, who, p)
		return
	}
	f.check(p.Role == "" && !p.Address.IsValid(), "%s.role and address: only with program", who)
	if c.Kubernetes == nil {
		f.check(p.Pod == "" && p.MAC == MAC{}, "%s.pod and mac: only with kubernetes", who)
		return
	}
	namespace, name, ok := strings.Cut(p.Pod, "/")
	f.check(p.Pod == "" || ok && namespace != "" && name != "", "%s.pod: %q is not namespace/name", who, p.Pod)
	f.check(p.Pod == "" || p.MAC != MAC{}, "%s.mac: missing", who)
}

// NodeConfig is the NodeConfig of this Node, made of configuration and API.
func (c *Config) NodeConfig(n *NodeFacts) *cluster.NodeConfig {
	k, g := c.Kubernetes, &c.Gateway
	key := cluster.Key{Kind: cluster.KindNodeConfig, Name: c.NodeName}
	nc := &cluster.NodeConfig{
		Meta:              cluster.Meta{Key: key, Source: cluster.Source{File: Source}},
		Release:           k.release(),
		Gateway:           cluster.GatewayPort{Name: g.Name, OFPort: g.OFPort, MAC: g.MAC},
		Tunnel:            cluster.TunnelPort{Name: c.Tunnel.Name, OFPort: c.Tunnel.OFPort, Type: c.Tunnel.Type},
		TransportIPs:      []netip.Addr{c.Tunnel.LocalAddress},
		Encap:             c.Encap(),
		TransportCIDRs:    c.TransportCIDRs,
		ServiceCIDRs:      k.ServiceCIDRs,
		NodePortAddresses: k.NodePortAddresses,
		EgressExceptCIDRs: k.EgressExceptCIDRs,
		ProxyAll:          k.ProxyAll,
		Features:          maps.Clone(k.Features),
		DefaultDSR:        k.DefaultLoadBalancerMode == "dsr",
		PacketInRate:      k.PacketInRate,
	}
	for _, a := range g.Addresses {
		nc.Gateway.IPs = append(nc.Gateway.IPs, a.Addr())
	}
	if len(nc.ServiceCIDRs) == 0 {
		nc.ServiceCIDRs = n.ServiceCIDRs
	}
	if len(nc.NodePortAddresses) == 0 {
		nc.NodePortAddresses = n.nodePortAddresses()
	}
	if !c.HasTunnel() {
		nc.Tunnel = cluster.TunnelPort{}
	}
	for _, p := range c.Ports {
		if p.Program == "" {
			nc.Ports = append(nc.Ports, p.switchPort())
		}
	}
	return nc
}

func (p *Port) switchPort() cluster.SwitchPort {
	s := cluster.SwitchPort{Name: p.Name, OFPort: p.OFPort, MAC: p.MAC}
	if namespace, name, ok := strings.Cut(p.Pod, "/"); ok {
		s.Pod = cluster.Name{Namespace: namespace, Name: name}
	}
	return s
}

// gatewayMAC is the default MAC of a Node's gateway: locally administered, the same after each
// start, and different on each Node.
func gatewayMAC(node string) (mac MAC) {
	sum := sha256.Sum256([]byte("antrail gateway " + node))
	copy(mac[:], sum[:])
	mac[0] = mac[0]&^0x01 | 0x02
	return mac
}
