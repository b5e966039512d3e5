package appctl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/conntrack/reassembly"
	"github.com/antrail/antrail/packet"
)

// ofDatapath removes the name of the datapath from the arguments if they begin with one.
func ofDatapath(args []string) ([]string, error) {
	if len(args) == 0 || strings.ContainsAny(args[0], "=,") {
		return args, nil
	}
	if args[0] != datapath {
		return nil, fmt.Errorf("opening datapath %s failed (No such device)", args[0])
	}
	return args[1:], nil
}

// flushConnections is dpctl/flush-conntrack of all connections or of a zone.
func (s *Switch) flushConnections(_ context.Context, args []string) (string, error) {
	args, err := ofDatapath(args)
	if err != nil {
		return "", err
	}
	if len(args) > 1 || len(args) == 1 && !strings.HasPrefix(args[0], "zone=") {
		return "", errors.New("flush-conntrack takes a zone here; a tuple is not supported")
	}
	f, err := ofZone(args)
	if err != nil {
		return "", err
	}
	s.Switch.Connections().Flush(f)
	return "", nil
}

// ofZone is a filter of the zone that the arguments name; of all connections if they name none.
func ofZone(args []string) (f conntrack.Filter, err error) {
	for _, a := range args {
		text, is := strings.CutPrefix(a, "zone=")
		zone, err := strconv.ParseUint(text, 10, 16)
		if !is || err != nil {
			return f, errors.New("ovs-vswitchd: failed to parse zone (Invalid argument)")
		}
		f.Zone = new(uint16(zone))
	}
	return f, nil
}

// errNoDatapath is the error for an unknown datapath or zone.
var errNoDatapath = errors.New("ovs-vswitchd: datapath not found (Invalid argument)")

// chosenConnections is a filter of the datapath and zone that the arguments name.
func chosenConnections(args []string) (conntrack.Filter, error) {
	if len(args) > 0 && !strings.HasPrefix(args[0], "zone=") {
		if args[0] != datapath {
			return conntrack.Filter{}, errNoDatapath
		}
		args = args[1:]
	}
	f, err := ofZone(args)
	if err != nil {
		err = errNoDatapath
	}
	return f, err
}

// dumpConnections is dpctl/dump-conntrack. With -s each line has the remaining time.
func (s *Switch) dumpConnections(_ context.Context, args []string) (string, error) {
	line := (*conntrack.Conn).String
	if len(args) > 0 && args[0] == "-s" {
		line, args = (*conntrack.Conn).Verbose, args[1:]
	}
	if slices.Contains(args, "-m") {
		return "", errors.New("-m is not supported: a connection has one state here, not one for each direction")
	}
	f, err := chosenConnections(args)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for c := range s.Switch.Connections().Dump(f) {
		b.WriteString(line(&c) + "\n")
	}
	return b.String(), nil
}

// showConnectionStats is dpctl/ct-stats-show: the number of connections by protocol.
func (s *Switch) showConnectionStats(_ context.Context, args []string) (string, error) {
	f, err := chosenConnections(args)
	if err != nil {
		return "", err
	}
	total, byProto := 0, map[string]int{}
	for c := range s.Switch.Connections().Dump(f) {
		total++
		byProto[statsNames[c.Orig.Proto]]++
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Connections Stats:\n    Total: %d\n", total)
	for _, name := range []string{"TCP", "UDP", "ICMP"} {
		if n := byProto[name]; n > 0 {
			fmt.Fprintf(&b, "  %s: %d\n", name, n)
		}
	}
	if n := byProto[""]; n > 0 {
		fmt.Fprintf(&b, "  Other: %d\n", n)
	}
	return b.String(), nil
}

// statsNames are the protocols with their own line in ct-stats-show.
var statsNames = map[uint8]string{packet.ProtoTCP: "TCP", packet.ProtoUDP: "UDP", packet.ProtoICMP: "ICMP"}

// zonesOf are the zones that arguments name: zone=N1,N2.
func zonesOf(args []string) (zones []uint16, err error) {
	for _, a := range args {
		list, is := strings.CutPrefix(a, "zone=")
		if !is {
			return nil, fmt.Errorf("ovs-vswitchd: invalid argument %s (Invalid argument)", a)
		}
		for text := range strings.SplitSeq(list, ",") {
			n, err := strconv.ParseUint(text, 10, 16)
			if err != nil {
				return nil, errors.New("ovs-vswitchd: invalid zone (Invalid argument)")
			}
			zones = append(zones, uint16(n))
		}
	}
	return zones, nil
}

// showLimits is dpctl/ct-get-limits: the default limit, and the zones with their own limit or those
// that the arguments name. The count of a zone without a limit is 0.
func (s *Switch) showLimits(_ context.Context, args []string) (string, error) {
	if len(args) > 0 && args[0] == datapath {
		args = args[1:]
	}
	zones, err := zonesOf(args)
	if err != nil {
		return "", err
	}
	limits := s.Switch.Connections().Limits()
	var b strings.Builder
	fmt.Fprintf(&b, "default limit=%d\n", limits.Default)
	if zones == nil {
		for _, z := range limits.Own {
			fmt.Fprintf(&b, "zone=%d,limit=%d,count=%d\n", z.Zone, z.Limit, z.Count)
		}
		return b.String(), nil
	}
	counts := map[uint16]conntrack.ZoneLimit{}
	for _, z := range s.Switch.Connections().Zones() {
		counts[z.Zone] = z
	}
	for _, zone := range zones {
		z := conntrack.ZoneLimit{Limit: limits.Default}
		own := slices.ContainsFunc(limits.Own, func(z conntrack.ZoneLimit) bool { return z.Zone == zone })
		if own || limits.Default > 0 {
			z = cmp.Or(counts[zone], z)
		}
		fmt.Fprintf(&b, "zone=%d,limit=%d,count=%d\n", zone, z.Limit, z.Count)
	}
	return b.String(), nil
}

// showFragments is dpctl/ipf-get-status, without the lines that antrail has no values for. Both
// families share limits and counters.
func (s *Switch) showFragments(_ context.Context, args []string) (string, error) {
	args = slices.DeleteFunc(args, func(a string) bool { return a == "-m" || a == "--more" })
	if len(args) > 0 && args[0] != datapath {
		return "", errNoDatapath
	}
	f := s.Switch.Fragments()
	return fmt.Sprintf("        Fragmentation Module Status\n        ---------------------------\n        v4 enabled: 1\n        v6 enabled: 1\n"+
		"        num frag: %d\n        min v4 frag size: %d\n        min v6 frag size: %d\n", f.Fragments, reassembly.MinFragment, reassembly.MinFragment), nil
}

// mostConnections is dpctl/ct-get-maxconns.
func (s *Switch) mostConnections(_ context.Context, args []string) (string, error) {
	if len(args) > 0 && args[0] != datapath {
		return "", errNoDatapath
	}
	return strconv.Itoa(s.Switch.Connections().Stats().Max), nil
}

// countConnections is dpctl/ct-get-nconns.
func (s *Switch) countConnections(_ context.Context, args []string) (string, error) {
	if _, err := ofDatapath(args); err != nil {
		return "", err
	}
	return strconv.Itoa(s.Switch.Connections().Stats().Entries), nil
}
