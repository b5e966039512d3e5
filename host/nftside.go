package host

import (
	"context"
	"fmt"
	"net"
	"strconv"

	"sigs.k8s.io/knftables"
)

// The rules for what crosses the gateway with a mark, and for Services' NodePorts.
// The gateway is a tap, which carries bytes only, so a mark is in the source
// address of the frame (docs/decisions/004):
//
//	prerouting    a frame from the gateway: its source address -> mark
//	output        what the Node itself sends to the gateway is marked a probe
//	egress        of the gateway's device: the probe's mark -> source address
//	nat           NodePorts -> the virtual NodePort address; marked packets that
//	              leave the Node -> the Egress' address
//
// The rules never change; what Services and Egresses come to are elements of
// sets and maps. All are in table "antrail" of family inet, but for the egress
// hook, which only family netdev has.

// ProbeMark is the mark of what the Node itself sends to its pods, such as a
// kubelet's probes.
const ProbeMark = 0x80000000

// egressMask is the part of a mark that numbers an Egress.
const egressMask = 0xff

// marksMap is a map that Set fills in: source address -> mark. Those of an
// address family have their names in families.
const marksMap = "egress-marks"

// addSideRules makes the rules, with sets that are empty yet.
func addSideRules(tx *knftables.Transaction, c *Config) {
	tx.Add(&knftables.Map{Name: marksMap, Type: "ether_addr : mark"})
	for _, f := range families {
		tx.Add(&knftables.Map{Name: f.egress, Type: "mark : " + f.addrType})
		tx.Add(&knftables.Set{Name: f.nodePorts, Type: f.addrType + " . inet_proto . inet_service"})
	}
	gw := quote(c.Gateway)
	addChain(tx, "mark-prerouting", knftables.FilterType, knftables.PreroutingHook, knftables.ManglePriority)
	addRule(tx, "mark-prerouting", "iifname", gw, "meta mark set ether saddr map @"+marksMap)
	addReplyRules(tx, c)
	addChain(tx, "mark-output", knftables.FilterType, knftables.OutputHook, knftables.ManglePriority)
	addRule(tx, "mark-output", "oifname", gw, "fib saddr type local meta mark set meta mark or", hex(ProbeMark))
	addChain(tx, "services-prerouting", knftables.NATType, knftables.PreroutingHook, knftables.DNATPriority)
	addChain(tx, "services-output", knftables.NATType, knftables.OutputHook, knftables.DNATPriority)
	// Before the chain that masquerades: the first that translates a connection decides.
	addChain(tx, "side-postrouting", knftables.NATType, knftables.PostroutingHook, knftables.SNATPriority+"-5")
	for _, v := range c.Virtual {
		f := familyOf(v.Service)
		for _, chain := range []string{"services-prerouting", "services-output"} {
			addRule(tx, chain, f.ip, "daddr . meta l4proto . th dport @"+f.nodePorts, "dnat", f.ip, "to", v.NodePort)
		}
		addRule(tx, "side-postrouting", "oifname !=", gw, "snat", f.ip, "to meta mark and", hex(egressMask), "map @"+f.egress)
		addRule(tx, "side-postrouting", f.ip, "saddr", v.Service, "masquerade")
	}
	// A connection of the Node's own to a NodePort began with another of its
	// addresses: pods see the gateway's.
	for _, a := range c.Addresses {
		f := familyOf(a.Addr())
		addRule(tx, "side-postrouting", "oifname", gw, f.ip, "saddr !=", a.Addr(), "fib saddr type local masquerade")
	}
}

// addMarkTable makes the rule at the gateway's device.
func (h *Host) addMarkTable(c *Config) error {
	nft, err := knftables.New(knftables.NetDevFamily, TableName)
	if err != nil {
		return fmt.Errorf("nftables: %w", err)
	}
	if err := writeMarkTable(nft, c); err != nil {
		return err
	}
	h.undoLater("nftables table "+TableName+" of the gateway", func() error { return deleteTable(nft) })
	return nil
}

// writeMarkTable makes that table anew.
func writeMarkTable(nft knftables.Interface, c *Config) error {
	tx := nft.NewTransaction()
	tx.Add(&knftables.Table{})
	tx.Delete(&knftables.Table{})
	tx.Add(&knftables.Table{Comment: knftables.PtrTo("marks to the antrail switch")})
	tx.Add(&knftables.Chain{
		Name: "gateway", Type: knftables.PtrTo(knftables.FilterType), Hook: knftables.PtrTo(knftables.EgressHook),
		Priority: knftables.PtrTo(knftables.FilterPriority), Device: &c.Gateway,
	})
	for _, mark := range c.hostMarks() {
		mac := c.MarkMAC(mark)
		addRule(tx, "gateway", "ether type { ip, ip6 } meta mark and", hex(mark), "!= 0 ether saddr set", net.HardwareAddr(mac[:]))
	}
	if err := run(nft, tx); err != nil {
		return fmt.Errorf("nftables table %s of the gateway: %w", TableName, err)
	}
	return nil
}

// setTable fills the sets and maps, all in one transaction.
func (h *Host) setTable(s *Side) error {
	tx := h.nft.NewTransaction()
	tx.Flush(&knftables.Map{Name: marksMap})
	for _, f := range families {
		tx.Flush(&knftables.Map{Name: f.egress})
		tx.Flush(&knftables.Set{Name: f.nodePorts})
		if h.config.Masquerade {
			tx.Flush(&knftables.Set{Name: f.pods})
		}
	}
	addElements(tx, &h.config, s)
	if err := run(h.nft, tx); err != nil {
		return fmt.Errorf("nftables table %s: %w", TableName, err)
	}
	h.filled = *s
	h.table.look()
	return nil
}

// addElements adds what sets and maps hold.
func addElements(tx *knftables.Transaction, c *Config, s *Side) {
	if c.Masquerade {
		for _, p := range clusterCIDRs(c, s) {
			tx.Add(&knftables.Element{Set: familyOf(p.Addr()).pods, Key: []string{p.Masked().String()}})
		}
	}
	for _, e := range s.Egresses {
		mac, mark := c.MarkMAC(uint32(e.Mark)), hex(uint32(e.Mark))
		tx.Add(&knftables.Element{Map: marksMap, Key: []string{net.HardwareAddr(mac[:]).String()}, Value: []string{mark}})
		tx.Add(&knftables.Element{Map: familyOf(e.Addr).egress, Key: []string{mark}, Value: []string{e.Addr.String()}})
	}
	for _, a := range s.NodePortAddresses {
		for _, p := range s.NodePorts {
			if (p.Family == 4) == a.Is4() {
				tx.Add(&knftables.Element{Set: familyOf(a).nodePorts, Key: []string{
					a.String(), strconv.Itoa(int(p.Proto)), strconv.Itoa(int(p.Port)),
				}})
			}
		}
	}
}

// run applies a transaction, in bounded time.
func run(nft knftables.Interface, tx *knftables.Transaction) error {
	ctx, cancel := context.WithTimeout(context.Background(), nftTimeout)
	defer cancel()
	return nft.Run(ctx, tx)
}

func hex(v uint32) string { return fmt.Sprintf("%#x", v) }
