package host

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/antrail/antrail/internal/nft"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Another Node's pod comes through the tunnel to an Egress' address on this Node. If its
// Node is reached without a tunnel, the Node's routes would send the answers straight over
// the underlay. Their source is outside the cluster, so the underlay may drop them. So the
// answers go back into the switch, and by the tunnel:
//
//	prerouting  a packet from the gateway with an Egress' mark, of no pod of this
//	            Node: its connection gets ReplyMark
//	            an answer of such a connection, from another link: the packet gets it
//	rule        packets with that mark look up table 141
//	table 141   by the gateway, via an address that has the Global Virtual MAC
//	egress      of the gateway's device: the mark -> source address (nftside.go)
//
// As in Antrea, mark and table have fixed numbers. Rules have the protocol number of
// directroutes.go, by which the next Up and Clean find them.

// ReplyMark is the mark of such connections and their answers.
const ReplyMark = 0x40000000

const (
	replyTable    = 141
	replyPriority = 141 // of the rules: before the main table's rule
)

// hostMarks are the marks that the Node sets on packets to the gateway.
func (c *Config) hostMarks() []uint32 {
	if c.EgressReplies {
		return []uint32{ProbeMark, ReplyMark}
	}
	return []uint32{ProbeMark}
}

// addReplyRules adds the rules that set the mark, after the Egress' mark.
func addReplyRules(t nft.Table, c *Config) {
	if !c.EgressReplies {
		return
	}
	gw, mark := quote(c.Gateway), hex(ReplyMark)
	for _, p := range c.PodCIDRs {
		t.Rule("mark-prerouting", "iifname", gw, "meta mark and", hex(egressMask), "!= 0", familyOf(p.Addr()).ip, "saddr !=", p.Masked(), "ct mark set ct mark or", mark)
	}
	t.Rule("mark-prerouting", "iifname !=", gw, "ct direction reply ct mark and", mark, "!= 0 meta mark set meta mark or", mark)
}

// addReplies makes neighbours, routes and rules. If EgressReplies is off, it removes those
// of a previous agent.
func (h *Host) addReplies(c *Config) error {
	if !c.EgressReplies {
		kept := 0 // no table
		if c.PodRoutes {
			kept = podTable
		}
		return cleanReplies(kept, func(string) {})
	}
	link, err := c.gateway()
	if err != nil {
		return err
	}
	for _, v := range c.Virtual {
		for _, t := range []thing{neighbourOf(link, v.Reply), replyRoute(link, v.Reply), replyRule(v.Reply)} {
			if err := h.addBase(t); err != nil {
				return err
			}
		}
	}
	return nil
}

// replyRoute is a default route of a family by the gateway.
func replyRoute(link netlink.Link, via netip.Addr) thing {
	r := &netlink.Route{
		LinkIndex: link.Attrs().Index, Dst: ipNet(netip.PrefixFrom(via, 0).Masked()), Gw: via.AsSlice(), Flags: int(netlink.FLAG_ONLINK), Table: replyTable, Protocol: routeProtocol,
	}
	return thing{
		fmt.Sprintf("route of table %d via %s", replyTable, via),
		func() error { return netlink.RouteReplace(r) },
		func() error { return netlink.RouteDel(r) },
		func(k *kernel) bool {
			return slices.ContainsFunc(k.routes, func(have netlink.Route) bool {
				return have.Table == replyTable && have.Gw.Equal(r.Gw) && have.LinkIndex == r.LinkIndex
			})
		},
	}
}

// replyRule leads marked packets to that table.
func replyRule(like netip.Addr) thing {
	r := netlink.NewRule()
	r.Family = netlink.FAMILY_V4
	if like.Is6() {
		r.Family = netlink.FAMILY_V6
	}
	mask := uint32(ReplyMark)
	r.Mark, r.Mask, r.Table, r.Priority, r.Protocol = ReplyMark, &mask, replyTable, replyPriority, routeProtocol
	return ruleThing(fmt.Sprintf("routing rule for table %d, %s", replyTable, familyOf(like).ip), r)
}

// ruleThing is a routing rule, identified by its family, table and mark.
func ruleThing(name string, r *netlink.Rule) thing {
	return thing{
		name,
		func() error {
			if err := netlink.RuleAdd(r); !errors.Is(err, unix.EEXIST) {
				return err
			}
			return nil // a previous agent made it
		},
		func() error { return netlink.RuleDel(r) },
		func(k *kernel) bool {
			return slices.ContainsFunc(k.rules, func(have netlink.Rule) bool {
				return have.Family == r.Family && have.Table == r.Table && have.Mark == r.Mark
			})
		},
	}
}

// replyRules are the rules with our protocol number.
func replyRules() (ours []netlink.Rule, err error) {
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		all, err := netlink.RuleList(family)
		if err != nil {
			return nil, fmt.Errorf("routing rules: %w", err)
		}
		for _, r := range all {
			if r.Protocol == routeProtocol {
				r.Family = family
				ours = append(ours, r)
			}
		}
	}
	return ours, nil
}

// cleanReplies removes those rules, except those of table kept. Their routes end with the
// gateway's link.
func cleanReplies(kept int, tell func(what string)) error {
	left, err := replyRules()
	if err != nil {
		return err
	}
	var errs []error
	for _, r := range left {
		if r.Table == kept {
			continue
		}
		errs = append(errs, cleaned(fmt.Sprintf("routing rule for table %d", r.Table), netlink.RuleDel(&r), tell))
	}
	return errors.Join(errs...)
}
