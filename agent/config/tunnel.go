package config

import (
	"net"
	"net/netip"
	"slices"

	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/tables"
	"github.com/antrail/antrail/tunnel"
)

// Tunnel is the port to the other Nodes. It takes VNI 0 only, unless the entries come from a
// flow file, which may set and match tun_id. It carries packets of both IP families.
type Tunnel struct {
	// Name is the name of the port.
	Name string `json:"name,omitempty"`
	// OFPort is the number of the port in the pipeline, 1 to 65279.
	OFPort uint32 `json:"ofPort,omitempty" unit:"port number"`
	// Type is one of geneve, vxlan and gre. It must be equal on all Nodes.
	Type string `json:"type,omitempty"`
	// LocalAddress is the Node's address on the underlay, IPv4 or IPv6. The peers' addresses
	// have its family.
	LocalAddress netip.Addr `json:"localAddress" default:"the Node's first InternalIP with kubernetes"`
	// Driver is one of kernel, afxdp and auto. With kernel, packets go through the Node's IP
	// stack; with afxdp, by an AF_XDP socket on the uplink. auto is kernel if connections are
	// offloaded, otherwise afxdp if that works.
	Driver string `json:"driver,omitempty"`
	// Uplink is the link for driver afxdp.
	Uplink string `json:"uplink,omitempty" default:"the link that has localAddress"`
}

// DriverKernel is a tunnel through the Node's IP stack.
const DriverKernel = door.DriverKernel

// KnownTunnelDriver says whether a tunnel can have this driver.
func KnownTunnelDriver(name string) bool {
	return name == DriverKernel || name == DriverAFXDP || name == DriverAuto
}

func (t *Tunnel) setDefaults() {
	orDefault(&t.Name, DefaultTunnel)
	orDefault(&t.Type, tunnel.KindGeneve.String())
	orDefault(&t.Driver, DriverKernel)
}

func (t *Tunnel) check(f *faults) {
	_, known := tunnel.KindNamed(t.Type)
	f.check(known, "tunnel.type: %q is none of geneve, vxlan and gre", t.Type)
	f.check(KnownTunnelDriver(t.Driver), "tunnel.driver: %q is none of kernel, afxdp and auto", t.Driver)
	f.check(t.OFPort < 0xff00, "tunnel.ofPort: %d is not between 1 and 65279", t.OFPort)
	f.checkNodeAddress("tunnel.localAddress", t.LocalAddress)
}

// Kind is the type of a checked tunnel.
func (t *Tunnel) Kind() tunnel.Kind {
	k, _ := tunnel.KindNamed(t.Type)
	return k
}

// ethernetMTU is the assumed MTU of the underlay.
const ethernetMTU = 1500

// linkMTU is the MTU of the link that has an address. It is ethernetMTU if no link has it, or
// links cannot be read.
func linkMTU(a netip.Addr) int {
	links, err := net.Interfaces()
	if err != nil || !a.IsValid() {
		return ethernetMTU
	}
	for _, l := range links {
		addrs, err := l.Addrs()
		if err == nil && slices.ContainsFunc(addrs, func(have net.Addr) bool {
			n, ok := have.(*net.IPNet)
			return ok && n.IP.Equal(a.AsSlice())
		}) {
			return l.MTU
		}
	}
	return ethernetMTU
}

// DefaultMTU is the default MTU of gateway and pods: an Ethernet's, less the overhead of this
// kind of tunnel over IPv4 or IPv6. An underlay link with a smaller MTU lowers it.
func DefaultMTU(k tunnel.Kind, v6 bool) int { return ethernetMTU - k.Overhead(v6) }

// Encap is the encapsulation mode of a checked configuration.
func (c *Config) Encap() tables.EncapMode {
	m, _ := tables.EncapModeNamed(c.TrafficEncapMode)
	return m
}

// HasTunnel says whether there is a tunnel port.
func (c *Config) HasTunnel() bool { return c.Encap().HasTunnel() }

// Overhead is how many bytes the path to other Nodes takes of the underlay's MTU.
func (c *Config) Overhead() int {
	if !c.HasTunnel() {
		return 0
	}
	return c.Tunnel.Kind().Overhead(c.Tunnel.LocalAddress.Is6())
}

// NextHop is the next hop to another Node's pods without a tunnel. It is not valid if they are
// reached through the tunnel.
func (c *Config) NextHop(p *Peer, pods netip.Prefix) netip.Addr {
	return c.Encap().NextHop(p.NodeIPs, c.TransportCIDRs, pods.Addr())
}

// checkEncap checks that the pods of all Nodes can be reached.
func (c *Config) checkEncap(f *faults) {
	mode, err := tables.EncapModeNamed(c.TrafficEncapMode)
	f.check(err == nil, "trafficEncapMode: %v", err)
	if mode == tables.PolicyOnly {
		f.check(c.Manifests != "", "trafficEncapMode: networkPolicyOnly needs manifests, whose NodeConfig names the links of another CNI")
		f.check(!*c.Masquerade, "masquerade: must be false with trafficEncapMode networkPolicyOnly: another CNI does that")
		f.check(len(c.Peers) == 0, "peers: not with trafficEncapMode networkPolicyOnly")
		f.check(c.CNI == CNIFiles{}, "cni: not with trafficEncapMode networkPolicyOnly")
	}
	f.check(mode != tables.Hybrid || len(c.TransportCIDRs) > 0, "transportCIDRs: missing; trafficEncapMode hybrid needs them")
	for i, p := range c.TransportCIDRs {
		f.check(p.IsValid() && !p.Addr().Is4In6(), "transportCIDRs[%d]: %v is not a range of addresses (CIDR)", i, p)
	}
	for i, p := range c.Peers {
		for j, a := range p.NodeIPs {
			f.check(isNodeAddress(a), "peers[%d].nodeIPs[%d]: %v cannot be the address of a Node", i, j, a)
		}
		for j, cidr := range p.PodCIDRs {
			f.check(mode != tables.NoEncap || c.NextHop(&p, cidr).IsValid(),
				"peers[%d].nodeIPs: none is of the family of podCIDRs[%d], %v, and there is no tunnel", i, j, cidr)
		}
	}
}
