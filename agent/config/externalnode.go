package config

import (
	"fmt"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/tables"
)

// The types of Nodes, with their names in Antrea.
const (
	NodeTypeK8s      = "k8sNode"
	NodeTypeExternal = "externalNode"
)

// External says whether the Node is a machine without pods.
func (c *Config) External() bool { return c.NodeType == NodeTypeExternal }

// checkExternal refuses what an external Node does not have.
func (c *Config) checkExternal(f *faults) {
	const not = "not with nodeType externalNode"
	g, t := c.Gateway, c.Tunnel
	g.MTU = 0 // the default
	f.check(c.Manifests != "", "manifests: missing: an external Node has its policies from there")
	f.check(g.Name == "" && g.OFPort == 0 && g.MAC == MAC{} && len(g.Addresses) == 0, "gateway: %s", not)
	f.check(t == Tunnel{}, "tunnel: %s", not)
	f.check(len(c.PodCIDRs) == 0, "podCIDRs: %s", not)
	f.check(len(c.Peers) == 0, "peers: %s", not)
	f.check(c.CNI == CNIFiles{}, "cni: %s", not)
	f.check(!*c.Masquerade, "masquerade: %s", not)
	f.check(c.TrafficEncapMode == tables.NoEncap.String(), "trafficEncapMode: %s", not)
}

// typeFits is an error unless both speak of a machine without pods, or neither.
func (c *Config) typeFits(n *cluster.NodeConfig) error {
	switch {
	case n.External() && !c.External():
		return fmt.Errorf("NodeConfig/%s has features: {ExternalNode: true}; in the configuration nodeType is %s", c.NodeName, c.NodeType)
	case !n.External() && c.External():
		return fmt.Errorf("NodeConfig/%s has no features: {ExternalNode: true}; in the configuration nodeType is %s", c.NodeName, c.NodeType)
	}
	return nil
}
