package agent

import (
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/host"
	"github.com/antrail/antrail/ports/underlay"
	"github.com/antrail/antrail/switchd"
	"github.com/antrail/antrail/tables"
	"github.com/antrail/antrail/tunnel"
)

// Tunnel is the port to the other Nodes. The VNI is 0, and no other is taken, unless
// the entries come from a flow file, which may set and match tun_id. LocalAddress is IPv4 or IPv6, and all peers' addresses are like it;
// pods of either family go through the tunnel.
type Tunnel struct {
	Name   string `json:"name,omitempty"`
	OFPort uint32 `json:"ofPort,omitempty"`
	// Type is geneve, vxlan or gre, the same on all Nodes; geneve when not given.
	Type         string     `json:"type,omitempty"`
	LocalAddress netip.Addr `json:"localAddress"`
	// Driver is kernel, where packets go through the Node's IP stack; afxdp, where
	// those of the tunnel take a short cut by an AF_XDP socket on Uplink; or auto,
	// which is afxdp where that can be had. kernel when not given.
	Driver string `json:"driver,omitempty"`
	// Uplink is a link of the Node; when not given, the one that has LocalAddress.
	Uplink string `json:"uplink,omitempty"`
}

// DriverKernel is a tunnel through the Node's IP stack.
const DriverKernel = switchd.DriverKernel

// KnownTunnelDriver says whether a tunnel can have this driver.
func KnownTunnelDriver(name string) bool {
	return name == DriverKernel || name == DriverAFXDP || name == DriverAuto
}

func (t *Tunnel) setDefaults() {
	orDefault(&t.Name, DefaultTunnel)
	orDefault(&t.OFPort, DefaultTunnelPort)
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

// kind is the tunnel's type, once that has been checked.
func (t *Tunnel) kind() tunnel.Kind {
	k, _ := tunnel.KindNamed(t.Type)
	return k
}

// ethernetMTU is the underlay's where nobody says otherwise.
const ethernetMTU = 1500

// linkMTU is that of the link with an address, as far as it can be known here: an
// Ethernet's where no link has it.
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

// DefaultMTU is that of gateway and pods when none is given: an Ethernet's, less
// what a tunnel of this kind over IPv4 or IPv6 takes of it. A link of the underlay
// that has less leaves less.
func DefaultMTU(k tunnel.Kind, v6 bool) int { return ethernetMTU - k.Overhead(v6) }

// encap is how packets go to pods of other Nodes, once that has been checked.
func (c *Config) encap() tables.EncapMode {
	m, _ := tables.EncapModeNamed(c.TrafficEncapMode)
	return m
}

// hasTunnel says whether there is a tunnel port.
func (c *Config) hasTunnel() bool { return c.encap() != tables.NoEncap }

// overhead is what the way to other Nodes takes of the underlay's MTU.
func (c *Config) overhead() int {
	if !c.hasTunnel() {
		return 0
	}
	return c.Tunnel.kind().Overhead(c.Tunnel.LocalAddress.Is6())
}

// outer is what the Node's side knows outer packets by.
func (c *Config) outer() host.Outer {
	if !c.hasTunnel() {
		return host.Outer{}
	}
	return host.Outer{Proto: c.Tunnel.kind().Proto(), Port: c.Tunnel.kind().Port()}
}

// nextHop is where packets for pods of another Node go without a tunnel; not valid
// where they do not.
func (c *Config) nextHop(p *Peer, pods netip.Prefix) netip.Addr {
	return c.encap().NextHop(p.NodeIPs, c.TransportCIDRs, pods.Addr())
}

// checkEncap checks that there is a way to the pods of all Nodes.
func (c *Config) checkEncap(f *faults) {
	mode, err := tables.EncapModeNamed(c.TrafficEncapMode)
	f.check(err == nil, "trafficEncapMode: %v", err)
	f.check(mode != tables.Hybrid || len(c.TransportCIDRs) > 0, "transportCIDRs: missing, and trafficEncapMode is hybrid")
	for i, p := range c.TransportCIDRs {
		f.check(p.IsValid() && !p.Addr().Is4In6(), "transportCIDRs[%d]: %v is no range of addresses", i, p)
	}
	for i, p := range c.Peers {
		for j, a := range p.NodeIPs {
			f.check(isNodeAddress(a), "peers[%d].nodeIPs[%d]: %v is no address of a Node", i, j, a)
		}
		for j, cidr := range p.PodCIDRs {
			f.check(mode != tables.NoEncap || c.nextHop(&p, cidr).IsValid(),
				"peers[%d].nodeIPs: none is of the family of podCIDRs[%d], %v, and there is no tunnel", i, j, cidr)
		}
	}
}

// nodesPort is what the agent tells the port to other Nodes, and asks it.
type nodesPort interface {
	SetPeers(nodes []underlay.Peer)
	SetSilent(nodes []netip.Addr)
	SetEgresses(here, far []netip.Addr) error
	PathMTU(node netip.Addr) int
}

// openTunnel has the switch open the port to the other Nodes, if there is to be one.
func (a *Agent) openTunnel() error {
	if !a.config.hasTunnel() {
		return nil
	}
	t := &a.config.Tunnel
	var peers []underlay.Peer
	for _, peer := range a.config.Peers {
		peers = append(peers, underlay.Peer{Address: peer.Address, Pods: peer.PodCIDRs})
	}
	if a.config.Kubernetes != nil {
		peers = nodesOf(a.live.objects.NodeSide().Peers)
	}
	err := a.opened.openPort(&door.PortSpec{
		No: t.OFPort, Name: t.Name, Driver: door.DriverTunnel, Security: dataplane.PortSecurity{MACs: [][6]byte{tables.GlobalVirtualMAC}},
		Tunnel: &door.TunnelSpec{
			Kind: t.Type, Local: t.LocalAddress, MTU: a.config.Gateway.MTU, Peers: doorPeers(peers), Pods: a.config.PodCIDRs,
			AnyNetwork: a.config.Flows != "", Driver: t.Driver, Uplink: t.Uplink,
		},
	})
	if err != nil {
		return fmt.Errorf("tunnel: %w", err)
	}
	a.tunnel = remoteTunnel{a.remote, t.Type, a.log}
	a.pipeline.tunnel.watch(a.config.Gateway.Name)
	a.tunnel.SetPeers(peers) // a port that the switch had already has old peers
	return nil
}
