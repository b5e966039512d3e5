package lab

import (
	"fmt"
	"net/netip"

	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/tables"
	"github.com/antrail/antrail/tunnel"
)

// Topology is the plan of a lab, as plain values.
type Topology struct {
	Outside Dual[netip.Prefix] // a host on the underlay without routes to pods
	Nodes   []Node
	// Balanced are addresses of Services that the outside host sends to a Node,
	// as a load balancer would.
	Balanced []Balanced
	// IPv6Underlay makes the tunnel use the Nodes' IPv6 addresses.
	IPv6Underlay bool
	// Tunnel is the tunnel's type, and Encap says which frames use it.
	Tunnel tunnel.Kind
	Encap  tables.EncapMode
}

// TunnelEnd is a Node's tunnel address.
func (t *Topology) TunnelEnd(n *Node) netip.Addr {
	if t.IPv6Underlay {
		return n.Address.V6.Addr()
	}
	return n.Address.V4.Addr()
}

// MTU is the MTU of pods and gateways.
func (t *Topology) MTU() int {
	if t.Encap == tables.NoEncap {
		return underlayMTU
	}
	return config.DefaultMTU(t.Tunnel, t.IPv6Underlay)
}

// Subnets are the underlay's subnets.
func (t *Topology) Subnets() (all []netip.Prefix) {
	for _, p := range t.Outside.Both() {
		all = append(all, p.Masked())
	}
	return all
}

// Node is a Node of the lab with its pods.
type Node struct {
	Name       string
	Address    Dual[netip.Prefix] // on the underlay
	PodCIDR    Dual[netip.Prefix]
	Gateway    Dual[netip.Addr]
	GatewayMAC config.MAC
	Pods       []Pod
}

// Pod is a pod: one eth0, whose port in the switch has the pod's name.
type Pod struct {
	Name    string
	Address Dual[netip.Addr]
	MAC     config.MAC
	OFPort  uint32
}

// Balanced is an address of a Service, and the Node to which the outside host sends it.
type Balanced struct {
	Address Dual[netip.Addr]
	Node    string
}

// Dual is a value for each address family.
type Dual[T any] struct{ V4, V6 T }

// Of is the value of IPv6, or of IPv4.
func (d Dual[T]) Of(v6 bool) T {
	if v6 {
		return d.V6
	}
	return d.V4
}

// Both are the two values, IPv4 first.
func (d Dual[T]) Both() []T { return []T{d.V4, d.V6} }

// String is the two values, IPv4 first, with a comma between.
func (d Dual[T]) String() string { return fmt.Sprintf("%v, %v", d.V4, d.V6) }

func addrs(v4, v6 string) Dual[netip.Addr] {
	return Dual[netip.Addr]{netip.MustParseAddr(v4), netip.MustParseAddr(v6)}
}

func prefixes(v4, v6 string) Dual[netip.Prefix] {
	return Dual[netip.Prefix]{netip.MustParsePrefix(v4), netip.MustParsePrefix(v6)}
}

// addrsOf are the addresses of prefixes.
func addrsOf(p Dual[netip.Prefix]) Dual[netip.Addr] {
	return Dual[netip.Addr]{p.V4.Addr(), p.V6.Addr()}
}

// within gives addresses the prefix lengths of prefixes.
func within(a Dual[netip.Addr], p Dual[netip.Prefix]) []netip.Prefix {
	return []netip.Prefix{netip.PrefixFrom(a.V4, p.V4.Bits()), netip.PrefixFrom(a.V6, p.V6.Bits())}
}

// underlayMTU is Ethernet's MTU, in bytes. The tunnel's headers come out of it.
const underlayMTU = 1500

// TwoNodes is the lab of the objects in examples/web-app. Its IPv4 half is the lab of the
// flow files and objects in examples/two-nodes. Addresses, MACs and port numbers must be
// the same there.
func TwoNodes() Topology {
	return Topology{
		Outside: prefixes("192.168.77.1/24", "fd00:77::1/64"),
		Balanced: []Balanced{
			{addrs("192.168.77.150", "fd00:77::150"), "node-a"},
			{addrs("192.168.77.151", "fd00:77::151"), "node-b"},
			{addrs("192.168.77.200", "fd00:77::200"), "node-a"},
		},
		Nodes: []Node{
			{
				Name:       "node-a",
				Address:    prefixes("192.168.77.102/24", "fd00:77::102/64"),
				PodCIDR:    prefixes("10.10.0.0/24", "fd00:10:10::/64"),
				Gateway:    addrs("10.10.0.1", "fd00:10:10::1"),
				GatewayMAC: mac("ba:5e:d1:55:aa:c0"),
				Pods: []Pod{
					{"client-a", addrs("10.10.0.26", "fd00:10:10::26"), mac("5e:b5:e3:a6:90:b7"), 36},
					{"web-a", addrs("10.10.0.24", "fd00:10:10::24"), mac("fa:b7:53:74:21:a6"), 37},
					{"db-a", addrs("10.10.0.25", "fd00:10:10::25"), mac("36:48:21:a2:9d:b4"), 38},
				},
			},
			{
				Name:       "node-b",
				Address:    prefixes("192.168.77.103/24", "fd00:77::103/64"),
				PodCIDR:    prefixes("10.10.1.0/24", "fd00:10:10:1::/64"),
				Gateway:    addrs("10.10.1.1", "fd00:10:10:1::1"),
				GatewayMAC: mac("ba:5e:d1:55:ab:c0"),
				Pods: []Pod{
					{"client-b", addrs("10.10.1.7", "fd00:10:10:1::7"), mac("5e:b5:e3:a6:91:b7"), 36},
					{"web-b", addrs("10.10.1.6", "fd00:10:10:1::6"), mac("fa:b7:53:74:22:a6"), 37},
					{"db-b", addrs("10.10.1.8", "fd00:10:10:1::8"), mac("36:48:21:a2:9e:b4"), 38},
				},
			},
		},
	}
}

func mac(text string) (m config.MAC) {
	if err := m.UnmarshalText([]byte(text)); err != nil {
		panic(err)
	}
	return m
}

// Config is the configuration of a Node's agent, without the source of its pipeline. link
// names the Node's end of a pod's veth. dir is the directory of the socket.
func (t *Topology) Config(n *Node, dir string, link func(pod string) string) *config.Config {
	c := &config.Config{
		NodeName: n.Name,
		Socket:   fmt.Sprintf("%s/%s.sock", dir, n.Name),
		Gateway: config.Gateway{
			MAC:       n.GatewayMAC,
			Addresses: within(n.Gateway, n.PodCIDR),
			MTU:       t.MTU(),
		},
		Tunnel:   config.Tunnel{Type: t.Tunnel.String(), LocalAddress: t.TunnelEnd(n)},
		PodCIDRs: n.PodCIDR.Both(),
	}
	if t.Encap != tables.Encap {
		c.TrafficEncapMode, c.TransportCIDRs = t.Encap.String(), t.Subnets()
	}
	for _, peer := range t.Nodes {
		if peer.Name != n.Name {
			c.Peers = append(c.Peers, config.Peer{
				Name: peer.Name, Address: t.TunnelEnd(&peer), PodCIDRs: peer.PodCIDR.Both(), Gateways: peer.Gateway.Both(),
				NodeIPs: addrsOf(peer.Address).Both(),
			})
		}
	}
	for _, p := range n.Pods {
		c.Ports = append(c.Ports, config.Port{Name: p.Name, OFPort: p.OFPort, Link: link(p.Name)})
	}
	return c
}
