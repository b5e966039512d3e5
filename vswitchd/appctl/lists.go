package appctl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/vswitchd/unixctl"
)

// Lists that antrail has in another form than Open vSwitch, or not at all. Each worker has its own
// cache, which no other goroutine may read, so cached flows cannot be listed. The kernel routes the
// packets of tunnels, so the switch has no routes and neighbours.

func (s *Switch) otherLists() []unixctl.Command {
	return []unixctl.Command{
		{Name: "dpctl/dump-flows", Usage: "[-m] [--names] [dp] [filter=..] [type=..] [pmd=..]", Max: 6, Run: s.noCachedFlows},
		{Name: "dpif/dump-flows", Usage: "[-m] [--names | --no-names] bridge", Min: 1, Max: 3, Run: s.dumpCachedFlows},
		{Name: "fdb/stats-show", Usage: "bridge", Min: 1, Max: 1, Run: s.showLearnedStats},
		{Name: "memory/show", Run: s.showMemory},
		{Name: "ofproto/list-tunnels", Run: s.listTunnels},
		{Name: "ovs/route/show", Run: nothing("Route Table:\n")},
		{Name: "qos/show", Usage: "interface", Min: 1, Max: 1, Run: s.noQoS("QoS not configured on %s\n")},
		{Name: "qos/show-types", Usage: "interface", Min: 1, Max: 1, Run: s.noQoS("No QoS types supported for interface: %s\n")},
		{Name: "revalidator/purge", Run: nothing("")}, // no cached walk outlives a change of its entries
		{Name: "revalidator/wait", Run: nothing("")},  // a change of entries is in force when it returns
		{Name: "tnl/arp/show", Run: nothing(noNeighbours)},
		{Name: "tnl/neigh/show", Run: nothing(noNeighbours)},
		{Name: "tnl/ports/show", Usage: "-v", Max: 1, Run: nothing("Listening ports:\n")},
		{Name: "upcall/show", Run: s.showUpcalls},
	}
}

const noNeighbours = "IP                                            MAC                 Bridge\n" +
	"==========================================================================\n"

var errNoCachedFlows = errors.New("cached flows cannot be listed: each worker has a cache of its own. dpctl/show counts them; ovs-ofctl dump-flows lists the entries")

// noCachedFlows is dpctl/dump-flows.
func (s *Switch) noCachedFlows(_ context.Context, args []string) (string, error) {
	args = slices.DeleteFunc(args, func(a string) bool { return a == "-m" || a == "--names" })
	for _, a := range args {
		switch name, _, _ := strings.Cut(a, "="); {
		case strings.HasPrefix(a, "-"):
			//lint:ignore ST1005 as Open vSwitch words it
			return "", fmt.Errorf("Unrecognized option %s", a)
		case a != datapath && name != "filter" && name != "type" && name != "pmd":
			return "", errNoDatapath
		}
	}
	return s.listCachedFlows()
}

// listCachedFlows is an empty list if no flow is cached, and an error otherwise.
func (s *Switch) listCachedFlows() (string, error) {
	if s.Switch.Cache().Entries > 0 {
		return "", errNoCachedFlows
	}
	return "", nil
}

// dumpCachedFlows is dpif/dump-flows.
func (s *Switch) dumpCachedFlows(_ context.Context, args []string) (string, error) {
	if args[len(args)-1] != s.Bridge() {
		return "", errNoBridge
	}
	return s.listCachedFlows()
}

// showLearnedStats is fdb/stats-show. Addresses are never static, and never evicted: a full table
// does not learn.
func (s *Switch) showLearnedStats(_ context.Context, args []string) (string, error) {
	if args[0] != s.Bridge() {
		return "", errNoBridge
	}
	n := s.Switch.MACTableStats()
	var b strings.Builder
	fmt.Fprintf(&b, "Statistics for bridge \"%s\":\n  Current/maximum MAC entries in the table: %d/%d\n", args[0], n.Current, n.Max)
	for _, l := range []struct {
		name  string
		count uint64
	}{
		{"  Current static MAC entries in the table ", 0}, {"  Total number of learned MAC entries     ", n.Learned}, {"  Total number of expired MAC entries     ", n.Expired},
		{"  Total number of evicted MAC entries     ", 0}, {"  Total number of port moved MAC entries  ", n.Moved},
	} {
		fmt.Fprintf(&b, "%s: %d\n", l.name, l.count)
	}
	return b.String(), nil
}

// showMemory is memory/show: the numbers of ports and entries.
func (s *Switch) showMemory(context.Context, []string) (string, error) {
	rules := 0
	for _, t := range s.Switch.Tables() {
		rules += t.Entries + t.Learned
	}
	return fmt.Sprintf("ports:%d rules:%d\n", len(s.Switch.Ports()), rules), nil
}

// listTunnels is ofproto/list-tunnels of a switch without tunnels.
func (s *Switch) listTunnels(context.Context, []string) (string, error) {
	if slices.ContainsFunc(s.Switch.Ports(), func(p telemetry.PortStats) bool { return p.Tunnel }) {
		return "", errors.New("tunnels are not listed: ovs-vsctl shows their options, and antrail dump-ports their counters")
	}
	return "", nil
}

// noQoS answers that a port has no QoS.
func (s *Switch) noQoS(text string) answer {
	return func(_ context.Context, args []string) (string, error) {
		if !slices.ContainsFunc(s.Switch.Ports(), func(p telemetry.PortStats) bool { return p.Name == args[0] }) {
			return "", errors.New("no such interface")
		}
		return fmt.Sprintf(text, args[0]), nil
	}
}

// showUpcalls is upcall/show. Workers walk the tables themselves, so there are no upcalls, and flows
// are cached walks.
func (s *Switch) showUpcalls(context.Context, []string) (string, error) {
	return fmt.Sprintf("%s:\n  flows         : (current %d)\n", datapath, s.Switch.Cache().Entries), nil
}
