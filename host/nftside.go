package host

import (
	"fmt"
	"net"
	"slices"
	"strconv"

	"github.com/antrail/antrail/internal/nft"
)

// The rules for marked packets that cross the gateway, and for Services' NodePorts. The
// gateway is a tap, which carries no marks, so a frame's source MAC address stands for its
// mark (docs/decisions/004):
//
//	prerouting    a frame from the gateway: its source address -> mark
//	output        packets of the Node itself to the gateway get the probe's mark
//	egress        of the gateway's device: the probe's mark -> source address
//	nat           NodePorts -> the virtual NodePort address; marked packets that
//	              leave the Node -> the Egress' address
//
// The rules never change. Services and Egresses are elements of sets and maps. All of it is
// in table "antrail" of family inet, except the egress hook, which only family netdev has.

// ProbeMark is the mark of packets from the Node itself to its pods, such as a kubelet's
// probes.
const ProbeMark = 0x80000000

// egressMask are the bits of a mark that number an Egress.
const egressMask = 0xff

// marksMap is a map that Set fills: source address -> mark. Maps of one address family have
// their names in families.
const marksMap = "egress-marks"

// addSideRules makes the rules, with empty sets and maps.
func addSideRules(t nft.Table, c *Config) {
	t.Map(marksMap, "ether_addr : mark")
	for _, f := range families {
		t.Map(f.egress, "mark : "+f.addrType)
		t.Set(f.nodePorts, f.addrType+" . inet_proto . inet_service")
	}
	gw := quote(c.Gateway)
	t.Chain("mark-prerouting", "filter", "prerouting", nft.Mangle)
	t.Rule("mark-prerouting", "iifname", gw, "meta mark set ether saddr map @"+marksMap)
	addReplyRules(t, c)
	t.Chain("mark-output", "filter", "output", nft.Mangle)
	t.Rule("mark-output", "oifname", gw, "fib saddr type local meta mark set meta mark or", hex(ProbeMark))
	t.Chain("services-prerouting", "nat", "prerouting", nft.DNAT)
	t.Chain("services-output", "nat", "output", nft.DNAT)
	// Before the masquerade chain: the first chain that translates a connection decides.
	t.Chain("side-postrouting", "nat", "postrouting", nft.SNAT-5)
	for _, v := range c.Virtual {
		f := familyOf(v.Service)
		for _, chain := range []string{"services-prerouting", "services-output"} {
			t.Rule(chain, f.ip, "daddr . meta l4proto . th dport @"+f.nodePorts, "dnat", f.ip, "to", v.NodePort)
		}
		t.Rule("side-postrouting", "oifname !=", gw, "snat", f.ip, "to meta mark and", hex(egressMask), "map @"+f.egress)
		t.Rule("side-postrouting", f.ip, "saddr", v.Service, "masquerade")
	}
	// The Node's own connection to a NodePort may have another of its addresses as source.
	// Pods see the gateway's.
	for _, a := range c.Addresses {
		f := familyOf(a.Addr())
		t.Rule("side-postrouting", "oifname", gw, f.ip, "saddr !=", a.Addr(), "fib saddr type local masquerade")
	}
}

// addMarkTable rewrites the table at the gateway's device.
func addMarkTable(s *nft.Script, c *Config) {
	t := oursAtDevice(s)
	t.Remove()
	t.Add("marks to the antrail switch")
	t.Chain("gateway", "filter", "egress device "+quote(c.Gateway), nft.Filter)
	for _, mark := range c.hostMarks() {
		mac := c.MarkMAC(mark)
		t.Rule("gateway", "ether type { ip, ip6 } meta mark and", hex(mark), "!= 0 ether saddr set", net.HardwareAddr(mac[:]))
	}
	c.Shared.addTo(t)
}

// setTable fills the sets and maps in one transaction, if their elements differ.
func (h *Host) setTable(s *Side) error {
	if s.fillsLike(&h.filled) {
		return nil
	}
	var script nft.Script
	t := ours(&script)
	t.FlushMap(marksMap)
	t.FlushSet(multicastNodes)
	for _, f := range families {
		t.FlushMap(f.egress)
		t.FlushSet(f.nodePorts)
		if h.config.Masquerade {
			t.FlushSet(f.pods)
		}
	}
	addElements(t, &h.config, s)
	if err := script.Run(); err != nil {
		return fmt.Errorf("nftables table %s: %w", TableName, err)
	}
	h.filled = *s
	h.table.read()
	return nil
}

// fillsLike says whether two Sides give the same elements.
func (s *Side) fillsLike(o *Side) bool {
	return slices.Equal(s.Peers, o.Peers) && slices.Equal(s.Egresses, o.Egresses) &&
		slices.Equal(s.NodePortAddresses, o.NodePortAddresses) && slices.Equal(s.NodePorts, o.NodePorts) && slices.Equal(s.Multicast, o.Multicast)
}

// addElements adds the elements of sets and maps.
func addElements(t nft.Table, c *Config, s *Side) {
	if c.Masquerade {
		for _, p := range clusterCIDRs(c, s) {
			t.Element(familyOf(p.Addr()).pods, p.Masked().String())
		}
	}
	for _, a := range s.Multicast {
		t.Element(multicastNodes, a.String())
	}
	for _, e := range s.Egresses {
		mac, mark := c.MarkMAC(uint32(e.Mark)), hex(uint32(e.Mark))
		t.Entry(marksMap, net.HardwareAddr(mac[:]).String(), mark)
		t.Entry(familyOf(e.Addr).egress, mark, e.Addr.String())
	}
	for _, a := range s.NodePortAddresses {
		for _, p := range s.NodePorts {
			if (p.Family == 4) == a.Is4() {
				t.Element(familyOf(a).nodePorts, a.String(), strconv.Itoa(int(p.Proto)), strconv.Itoa(int(p.Port)))
			}
		}
	}
}

func hex(v uint32) string { return fmt.Sprintf("%#x", v) }
