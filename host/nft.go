package host

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"sigs.k8s.io/knftables"
)

// TableName is our nftables table, in the inet family. Nothing outside it is
// read or written.
const TableName = "antrail"

// nftTimeout bounds one call of nft(8).
const nftTimeout = 5 * time.Second

// family is what the rules of an address family differ by: its word and type, and
// the names of its sets and maps.
type family struct {
	ip, addrType string
	pods         string // the pod CIDRs of all Nodes: what is inside the cluster
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

// addTable installs our nftables table in one transaction: the Node has all of
// its rules or none. A table that a killed agent left is replaced.
func (h *Host) addTable(c *Config) error {
	nft, err := knftables.New(knftables.InetFamily, TableName)
	if err != nil {
		return fmt.Errorf("nftables: %w", err)
	}
	h.nft = nft
	if err := h.writeTable(c); err != nil {
		return err
	}
	h.undoLater("nftables table "+TableName, func() error { return deleteTable(nft) })
	return nil
}

// writeTable makes the table anew, with what its sets and maps hold.
func (h *Host) writeTable(c *Config) error {
	tx := h.nft.NewTransaction()
	tx.Add(&knftables.Table{})
	tx.Delete(&knftables.Table{})
	tx.Add(&knftables.Table{Comment: knftables.PtrTo("the Node's side of the antrail switch")})
	addForward(tx, c)
	addLoopback(tx, c)
	addNotrack(tx, c)
	addMasquerade(tx, c)
	addSideRules(tx, c)
	addElements(tx, c, &h.filled)
	if err := run(h.nft, tx); err != nil {
		return fmt.Errorf("nftables table %s: %w", TableName, err)
	}
	return nil
}

func deleteTable(nft knftables.Interface) error {
	tx := nft.NewTransaction()
	tx.Delete(&knftables.Table{})
	if err := run(nft, tx); err != nil && !knftables.IsNotFound(err) {
		return err
	}
	return nil
}

// addForward accepts packets that are forwarded from and to the gateway, except those
// for a tunnel (guard.go). An accept ends this table's chain only: another program's drop
// still drops.
func addForward(tx *knftables.Transaction, c *Config) {
	addChain(tx, "forward", knftables.FilterType, knftables.ForwardHook, knftables.FilterPriority)
	addGuard(tx, c)
	addRule(tx, "forward", "iifname", quote(c.Gateway), "accept")
	addRule(tx, "forward", "oifname", quote(c.Gateway), "accept")
}

// addLoopback keeps pods from the Node's loopback addresses, which route_localnet
// would open to them (sysctl.go). What answers a NodePort of 127.0.0.1 has the
// gateway's address here: connection tracking comes later.
func addLoopback(tx *knftables.Transaction, c *Config) {
	addChain(tx, "loopback", knftables.FilterType, knftables.PreroutingHook, knftables.RawPriority)
	for _, end := range []string{"saddr", "daddr"} {
		addRule(tx, "loopback", "iifname", quote(c.Gateway), "ip", end, "127.0.0.0/8", "drop")
	}
}

// addNotrack keeps the tunnel's outer packets out of the Node's conntrack: they
// are many flows that nobody asks about, and the table is bounded.
func addNotrack(tx *knftables.Transaction, c *Config) {
	if c.Tunnel == (Outer{}) {
		return
	}
	outer := c.Tunnel.words()
	addChain(tx, "raw-prerouting", knftables.FilterType, knftables.PreroutingHook, knftables.RawPriority)
	addRule(tx, "raw-prerouting", outer, "fib daddr type local notrack")
	addChain(tx, "raw-output", knftables.FilterType, knftables.OutputHook, knftables.RawPriority)
	addRule(tx, "raw-output", outer, "fib saddr type local notrack")
}

// addMasquerade gives pod traffic that leaves the cluster the Node's address:
// from our pods, not to a pod of any Node, not out of the gateway.
func addMasquerade(tx *knftables.Transaction, c *Config) {
	if !c.Masquerade {
		return
	}
	for _, f := range families {
		tx.Add(&knftables.Set{Name: f.pods, Type: f.addrType, Flags: []knftables.SetFlag{knftables.IntervalFlag}})
	}
	addChain(tx, "postrouting", knftables.NATType, knftables.PostroutingHook, knftables.SNATPriority)
	for _, p := range c.PodCIDRs {
		f := familyOf(p.Addr())
		addRule(tx, "postrouting", f.ip, "saddr", p.Masked().String(), f.ip, "daddr != @"+f.pods,
			"oifname !=", quote(c.Gateway), "masquerade")
	}
}

// clusterCIDRs are the pods of all Nodes.
func clusterCIDRs(c *Config, s *Side) []netip.Prefix {
	all := append([]netip.Prefix(nil), c.PodCIDRs...)
	for _, p := range append(slices.Clone(c.Peers), s.Peers...) {
		all = append(all, p.PodCIDR)
	}
	return all
}

func addChain(tx *knftables.Transaction, name string, t knftables.BaseChainType, hook knftables.BaseChainHook, prio knftables.BaseChainPriority) {
	tx.Add(&knftables.Chain{Name: name, Type: &t, Hook: &hook, Priority: &prio})
}

func addRule(tx *knftables.Transaction, chain string, words ...any) {
	tx.Add(&knftables.Rule{Chain: chain, Rule: knftables.Concat(words...)})
}

func quote(link string) string { return `"` + link + `"` }
