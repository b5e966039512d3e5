package lab

import (
	"fmt"
	"net/netip"

	"github.com/antrail/antrail/agent"
)

// Topology is the plan of a lab: values only, nothing is made yet.
type Topology struct {
	Outside netip.Prefix // a host of the underlay that knows no pod range
	Nodes   []Node
}

// Node is a Node of the lab with its pods.
type Node struct {
	Name       string
	Address    netip.Prefix // on the underlay
	PodCIDR    netip.Prefix
	Gateway    netip.Addr
	GatewayMAC agent.MAC
	Pods       []Pod
}

// Pod is a pod: one eth0, whose port in the switch has the pod's name.
type Pod struct {
	Name    string
	Address netip.Addr
	MAC     agent.MAC
	OFPort  uint32
}

// MTU of the underlay, and of pods and gateways: Geneve over IPv4 adds 50 bytes.
const (
	underlayMTU = 1500
	podMTU      = agent.DefaultMTU
)

// TwoNodes is the lab that the objects in examples/web-app and the flow files in
// examples/two-nodes are written for; addresses, MACs and port numbers must be the same here and there.
func TwoNodes() Topology {
	return Topology{
		Outside: netip.MustParsePrefix("192.168.77.1/24"),
		Nodes: []Node{
			{
				Name:       "node-a",
				Address:    netip.MustParsePrefix("192.168.77.102/24"),
				PodCIDR:    netip.MustParsePrefix("10.10.0.0/24"),
				Gateway:    netip.MustParseAddr("10.10.0.1"),
				GatewayMAC: mac("ba:5e:d1:55:aa:c0"),
				Pods: []Pod{
					{"client-a", netip.MustParseAddr("10.10.0.26"), mac("5e:b5:e3:a6:90:b7"), 36},
					{"web-a", netip.MustParseAddr("10.10.0.24"), mac("fa:b7:53:74:21:a6"), 37},
					{"db-a", netip.MustParseAddr("10.10.0.25"), mac("36:48:21:a2:9d:b4"), 38},
				},
			},
			{
				Name:       "node-b",
				Address:    netip.MustParsePrefix("192.168.77.103/24"),
				PodCIDR:    netip.MustParsePrefix("10.10.1.0/24"),
				Gateway:    netip.MustParseAddr("10.10.1.1"),
				GatewayMAC: mac("ba:5e:d1:55:ab:c0"),
				Pods: []Pod{
					{"client-b", netip.MustParseAddr("10.10.1.7"), mac("5e:b5:e3:a6:91:b7"), 36},
					{"web-b", netip.MustParseAddr("10.10.1.6"), mac("fa:b7:53:74:22:a6"), 37},
					{"db-b", netip.MustParseAddr("10.10.1.8"), mac("36:48:21:a2:9e:b4"), 38},
				},
			},
		},
	}
}

func mac(text string) (m agent.MAC) {
	if err := m.UnmarshalText([]byte(text)); err != nil {
		panic(err)
	}
	return m
}

// Config is the configuration of a Node's agent, but for where its pipeline comes
// from. link names the host end of a pod's veth; dir is where the socket goes.
func (t *Topology) Config(n *Node, dir string, link func(pod string) string) *agent.Config {
	c := &agent.Config{
		NodeName: n.Name,
		Socket:   fmt.Sprintf("%s/%s.sock", dir, n.Name),
		Gateway: agent.Gateway{
			MAC:       n.GatewayMAC,
			Addresses: []netip.Prefix{netip.PrefixFrom(n.Gateway, n.PodCIDR.Bits())},
			MTU:       podMTU,
		},
		Tunnel:   agent.Tunnel{LocalAddress: n.Address.Addr()},
		PodCIDRs: []netip.Prefix{n.PodCIDR},
	}
	for _, peer := range t.Nodes {
		if peer.Name != n.Name {
			c.Peers = append(c.Peers, agent.Peer{
				Name: peer.Name, Address: peer.Address.Addr(), PodCIDR: peer.PodCIDR, Gateway: peer.Gateway,
			})
		}
	}
	for _, p := range n.Pods {
		c.Ports = append(c.Ports, agent.Port{Name: p.Name, OFPort: p.OFPort, Link: link(p.Name)})
	}
	return c
}
