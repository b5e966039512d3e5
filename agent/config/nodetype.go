package config

import (
	"fmt"
	"os"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/manifest"
	"github.com/antrail/antrail/tables"
)

// checkType checks the type of the Node, and refuses what an external Node does not have.
func (c *Config) checkType(f *faults) {
	f.check(c.NodeType == "k8sNode" || c.External(), "nodeType: %q is neither k8sNode nor externalNode", c.NodeType)
	if !c.External() {
		return
	}
	const not = "not with nodeType externalNode"
	g, t := c.Gateway, c.Tunnel
	g.MTU = 0 // the default
	f.check(c.FromObjects(), "manifests, kubernetes: set one of them, as the source of an external Node's policies")
	f.check(g.Name == "" && g.OFPort == 0 && g.MAC == MAC{} && len(g.Addresses) == 0, "gateway: %s", not)
	f.check(t == Tunnel{}, "tunnel: %s", not)
	f.check(len(c.PodCIDRs) == 0, "podCIDRs: %s", not)
	f.check(len(c.Peers) == 0, "peers: %s", not)
	f.check(c.CNI == CNIFiles{}, "cni: %s", not)
	f.check(!*c.Masquerade, "masquerade: %s", not)
	f.check(c.TrafficEncapMode == tables.NoEncap.String(), "trafficEncapMode: %s", not)
}

// LearnExternal reads the NodeConfig of an external Node, whose objects come from the API.
func (c *Config) LearnExternal() (*cluster.NodeConfig, error) {
	file := c.Kubernetes.NodeConfig
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	all := manifest.Decode(file, text)
	if len(all.Problems) > 0 {
		return nil, all.Problems[0]
	}
	for _, o := range all.Objects {
		if n, ok := o.(*cluster.NodeConfig); ok && n.Key.Name == c.NodeName {
			return n, c.Fits(n)
		}
	}
	return nil, fmt.Errorf("%s: there is no NodeConfig/%s", file, c.NodeName)
}

// typeFits returns an error if only one of configuration and NodeConfig describes a machine
// without pods.
func (c *Config) typeFits(n *cluster.NodeConfig) error {
	switch {
	case n.External() && !c.External():
		return fmt.Errorf("NodeConfig/%s has features: {ExternalNode: true}; in the configuration nodeType is not externalNode", c.NodeName)
	case !n.External() && c.External():
		return fmt.Errorf("NodeConfig/%s has no features: {ExternalNode: true}; in the configuration nodeType is externalNode", c.NodeName)
	}
	return nil
}
