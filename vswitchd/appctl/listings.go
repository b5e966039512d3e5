package appctl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
)

// listBridges is ofproto/list.
func (s *Switch) listBridges(context.Context, []string) (string, error) {
	if name := s.Bridge(); name != "" {
		return name + "\n", nil
	}
	return "", nil
}

// dumpFlows is bridge/dump-flows.
func (s *Switch) dumpFlows(_ context.Context, args []string) (string, error) {
	offload := ""
	if args[0] == "--offload-stats" {
		offload, args = "n_offload_packets=0, n_offload_bytes=0, ", args[1:]
	}
	if len(args) != 1 || args[0] != s.Bridge() {
		return "", errors.New("Unknown bridge") //lint:ignore ST1005 as Open vSwitch words it
	}
	if offload != "" {
		return "", errors.New("--offload-stats is not supported: the switch counts no offloaded packets by entry")
	}
	var b strings.Builder
	for _, f := range s.Switch.Flows() {
		if f.Table != 0 {
			fmt.Fprintf(&b, "table_id=%d, ", f.Table)
		}
		fmt.Fprintf(&b, "duration=%ds, n_packets=%d, n_bytes=%d, ", f.Duration/time.Second, f.Packets, f.Bytes)
		var words []string
		if f.Priority != flow.DefaultPriority {
			words = append(words, fmt.Sprintf("priority=%d", f.Priority))
		}
		if match := f.Match.String(); match != "" {
			words = append(words, match)
		}
		fmt.Fprintf(&b, "%s,actions=%s\n", strings.Join(words, ","), flow.ActionsText(f.Actions, flow.Format{}))
	}
	return b.String(), nil
}

// showLearned is fdb/show.
func (s *Switch) showLearned(_ context.Context, args []string) (string, error) {
	if s.Bridge() != args[0] {
		return "", errNoBridge
	}
	var b strings.Builder
	b.WriteString(" port  VLAN  MAC                Age\n")
	for _, l := range s.Switch.LearnedMACs() {
		port := fmt.Sprint(l.Port)
		if l.Port == flow.PortLocal {
			port = "LOCAL"
		}
		fmt.Fprintf(&b, "%5s  %4d  %v  %3d\n", port, l.VLAN, l.MAC, time.Duration(l.Age)/time.Second)
	}
	return b.String(), nil
}

// flushed is the answer of fdb/flush and mdb/flush.
const flushed = "table successfully flushed"

// flushLearned is fdb/flush, of a bridge or of all.
func (s *Switch) flushLearned(_ context.Context, args []string) (string, error) {
	if len(args) > 0 && args[0] != s.Bridge() {
		return "", errNoBridge
	}
	return flushed, s.Switch.FlushMACs()
}

// datapath is the name of the datapath.
const datapath = "netdev@ovs-netdev"

// listDatapaths is dpif/dump-dps.
func (s *Switch) listDatapaths(context.Context, []string) (string, error) {
	if name := s.Bridge(); name != "" {
		return "netdev@" + name + "\n", nil
	}
	return "", nil
}

// showPorts is dpif/show: each port with its numbers in OpenFlow and in the datapath, and its
// driver.
func (s *Switch) showPorts(context.Context, []string) (string, error) {
	hits, misses := s.cacheCounts()
	var b strings.Builder
	fmt.Fprintf(&b, "%s: hit:%d missed:%d\n", datapath, hits, misses)
	name := s.Bridge()
	if name == "" {
		return b.String(), nil
	}
	fmt.Fprintf(&b, "  %s:\n", name)
	ports := s.sortedPorts(func(a, b telemetry.PortStats) int { return strings.Compare(a.Name, b.Name) })
	for i := range ports {
		p := &ports[i]
		no := datapathNumber(p.No)
		fmt.Fprintf(&b, "    %s %d/%d: (%s)\n", p.Name, no, no, p.Driver)
	}
	return b.String(), nil
}

// cacheCounts counts the hits and misses of the flow cache.
func (s *Switch) cacheCounts() (hits, misses uint64) {
	e := s.Switch.Cache().Events
	return e[telemetry.CacheHit] + e[telemetry.CacheFirst], e[telemetry.CacheMiss]
}

func (s *Switch) sortedPorts(order func(a, b telemetry.PortStats) int) []telemetry.PortStats {
	ports := s.Switch.Ports()
	slices.SortFunc(ports, order)
	return ports
}

// showDatapath is dpctl/show. lost is 0, because workers walk the tables themselves. flows counts
// cached walks.
func (s *Switch) showDatapath(_ context.Context, args []string) (string, error) {
	counted := len(args) > 0 && (args[0] == "-s" || args[0] == "--statistics")
	if counted {
		args = args[1:]
	}
	if _, err := ofDatapath(args); err != nil {
		return "", fmt.Errorf("ovs-vswitchd: %w", err)
	}
	hits, misses := s.cacheCounts()
	var b strings.Builder
	fmt.Fprintf(&b, "%s:\n  lookups: hit:%d missed:%d lost:0\n  flows: %d\n", datapath, hits, misses, s.Switch.Cache().Entries)
	for _, p := range s.sortedPorts(func(a, b telemetry.PortStats) int { return int(datapathNumber(a.No)) - int(datapathNumber(b.No)) }) {
		fmt.Fprintf(&b, "  port %d: %s (%s)\n", datapathNumber(p.No), p.Name, p.Driver)
		if counted {
			b.WriteString(portCounters(&p))
		}
	}
	return b.String(), nil
}

// portCounters are the lines of a port in dpctl/show -s, with "?" for a counter that antrail lacks.
func portCounters(p *telemetry.PortStats) string {
	return fmt.Sprintf("    RX packets:%d errors:%d dropped:%d overruns:? frame:?\n    TX packets:%d errors:%d dropped:%d aborted:? carrier:?\n    collisions:?\n    RX bytes:%d%s  TX bytes:%d%s\n",
		p.RxPackets, p.RxErrors, p.RxDropped, p.TxPackets, p.TxErrors, p.TxDropped, p.RxBytes, roundedBytes(p.RxBytes), p.TxBytes, roundedBytes(p.TxBytes))
}

// roundedBytes is a large count in binary units, in brackets.
func roundedBytes(n uint64) string {
	for i, unit := range []string{"TiB", "GiB", "MiB", "KiB"} {
		if size := uint64(1) << (40 - 10*i); n >= size {
			return fmt.Sprintf(" (%.1f %s)", float64(n)/float64(size), unit)
		}
	}
	return ""
}

// listDatapathCommands is dpctl/list-commands.
func (s *Switch) listDatapathCommands(context.Context, []string) (string, error) {
	var b strings.Builder
	b.WriteString("The available commands are:\n")
	for _, c := range s.Commands() {
		if strings.HasPrefix(c.Name, "dpctl/") {
			fmt.Fprintf(&b, "  %-29s %s\n", c.Name, c.Usage)
		}
	}
	return b.String(), nil
}
