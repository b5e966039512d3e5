package config

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"

	"github.com/antrail/antrail/switchd"
)

// NodeFacts is what the API says of a Node.
type NodeFacts struct {
	Node         string         `json:"node"`
	PodCIDRs     []netip.Prefix `json:"podCIDRs"`
	Addresses    []netip.Addr   `json:"addresses"`
	ServiceCIDRs []netip.Prefix `json:"serviceCIDRs,omitempty"`
}

// nodePortAddresses are the Node's addresses and 127.0.0.1, as in Antrea. IPv6 has
// no route_localnet, so ::1 cannot serve NodePorts.
func (n *NodeFacts) nodePortAddresses() []netip.Addr {
	all := slices.Clone(n.Addresses)
	if slices.ContainsFunc(all, netip.Addr.Is4) {
		all = append(all, netip.AddrFrom4([4]byte{127, 0, 0, 1}))
	}
	return all
}

// maxFacts bounds the file.
const maxFacts = 1 << 16

// ReadFacts reads what an agent of this Node kept.
func ReadFacts(path, node string) (*NodeFacts, error) {
	b, err := switchd.ReadOwnFile(path, maxFacts)
	if err != nil {
		return nil, err
	}
	n := &NodeFacts{}
	if err := json.Unmarshal(b, n); err != nil {
		return nil, err
	}
	if n.Node != node || len(n.PodCIDRs) == 0 || len(n.Addresses) == 0 {
		return nil, fmt.Errorf("%s: not of this Node", path)
	}
	return n, nil
}

// Write writes the file, and makes its directory: an agent with --take-over may be the first
// to need it, if no agent runs.
func (n *NodeFacts) Write(path string) error {
	b, err := json.Marshal(n)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o755)
	}
	if err == nil {
		err = switchd.WriteOwnFile(path, append(b, '\n'))
	}
	return err
}

// Learn fills in what the configuration leaves to the API, and checks the whole.
func (c *Config) Learn(n *NodeFacts) error {
	if len(c.PodCIDRs) == 0 {
		c.PodCIDRs = n.PodCIDRs
	}
	if len(c.Gateway.Addresses) == 0 {
		for _, p := range c.PodCIDRs {
			c.Gateway.Addresses = append(c.Gateway.Addresses, netip.PrefixFrom(p.Masked().Addr().Next(), p.Bits()))
		}
	}
	if !c.Tunnel.LocalAddress.IsValid() {
		c.Tunnel.LocalAddress = n.Addresses[0]
	}
	c.learned = true
	c.setDefaults()
	return c.check()
}
