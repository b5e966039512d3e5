package host

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/antrail/antrail/internal/nft"
)

// TableName is the name of our nftables tables, in the families inet and netdev. The
// package reads and writes no other tables.
const TableName = "antrail"

// family has the words of an address family in rules: its keyword and type, and the names
// of its sets and maps.
type family struct {
	ip, addrType string
	pods         string // the pod CIDRs of all Nodes
	egress       string // mark -> address
	nodePorts    string // address, protocol, port
}

var families = [2]family{
	{"ip", "ipv4_addr", "pod-cidrs", "egress-addresses", "node-ports"},
	{"ip6", "ipv6_addr", "pod-cidrs6", "egress-addresses6", "node-ports6"},
}

func familyOf(a netip.Addr) *family {
	if a.Is4() {
		return &families[0]
	}
	return &families[1]
}

// addTables installs both nftables tables in one transaction, so that the Node has all
// rules or none. It replaces tables of a killed agent.
func (h *Host) addTables(c *Config) error {
	if err := h.writeTables(c); err != nil {
		return err
	}
	h.undoLater("nftables tables "+TableName, removeTables)
	return nil
}

// writeTables writes both tables, with the elements of their sets and maps.
func (h *Host) writeTables(c *Config) error {
	var s nft.Script
	t := ours(&s)
	t.Remove()
	t.Add("the Node's side of the antrail switch")
	addForward(t, c)
	addLoopback(t, c)
	addNotrack(t, c)
	addMasquerade(t, c)
	addSideRules(t, c)
	addElements(t, c, &h.filled)
	addMarkTable(&s, c)
	if err := s.Run(); err != nil {
		return fmt.Errorf("nftables tables %s: %w", TableName, err)
	}
	return nil
}

// ours is the table for packets that cross the Node, oursAtDevice the one at the gateway's
// device.
func ours(s *nft.Script) nft.Table         { return s.Table("inet", TableName) }
func oursAtDevice(s *nft.Script) nft.Table { return s.Table("netdev", TableName) }

// removeTables removes both tables, if they exist.
func removeTables() error {
	var s nft.Script
	ours(&s).Remove()
	oursAtDevice(&s).Remove()
	return s.Run()
}

// addForward accepts packets that are forwarded from and to the gateway, except those to a
// tunnel (guard.go). An accept ends only this table's chain: another program's drop still
// drops.
func addForward(t nft.Table, c *Config) {
	t.Chain("forward", "filter", "forward", nft.Filter)
	addGuard(t, c)
	addMulticast(t, c)
	t.Rule("forward", "iifname", quote(c.Gateway), "accept")
	t.Rule("forward", "oifname", quote(c.Gateway), "accept")
}

// addLoopback drops packets between pods and the Node's loopback addresses, which
// route_localnet would allow (sysctl.go). Answers of a NodePort at 127.0.0.1 still have the
// gateway's address here, because conntrack comes later.
func addLoopback(t nft.Table, c *Config) {
	t.Chain("loopback", "filter", "prerouting", nft.Raw)
	for _, end := range []string{"saddr", "daddr"} {
		t.Rule("loopback", "iifname", quote(c.Gateway), "ip", end, "127.0.0.0/8", "drop")
	}
}

// addNotrack keeps the tunnel's outer packets out of the Node's conntrack: they are many
// flows, no rule needs them, and the table is bounded.
func addNotrack(t nft.Table, c *Config) {
	if c.Tunnel == (Outer{}) {
		return
	}
	outer := c.Tunnel.words()
	t.Chain("raw-prerouting", "filter", "prerouting", nft.Raw)
	t.Rule("raw-prerouting", outer, "fib daddr type local notrack")
	t.Chain("raw-output", "filter", "output", nft.Raw)
	t.Rule("raw-output", outer, "fib saddr type local notrack")
}

// addMasquerade masquerades pod traffic that leaves the cluster: from this Node's pods, not
// to a pod of any Node, not out of the gateway.
func addMasquerade(t nft.Table, c *Config) {
	if !c.Masquerade {
		return
	}
	for _, f := range families {
		t.Set(f.pods, f.addrType, "interval")
	}
	t.Chain("postrouting", "nat", "postrouting", nft.SNAT)
	for _, p := range c.PodCIDRs {
		f := familyOf(p.Addr())
		t.Rule("postrouting", f.ip, "saddr", p.Masked().String(), f.ip, "daddr != @"+f.pods,
			"oifname !=", quote(c.Gateway), "masquerade")
	}
}

// clusterCIDRs are the pod CIDRs of all Nodes.
func clusterCIDRs(c *Config, s *Side) []netip.Prefix {
	all := append([]netip.Prefix(nil), c.PodCIDRs...)
	for _, p := range append(slices.Clone(c.Peers), s.Peers...) {
		all = append(all, p.PodCIDR)
	}
	return all
}

func quote(link string) string { return `"` + link + `"` }
