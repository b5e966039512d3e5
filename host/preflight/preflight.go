// Package preflight checks a Node before an agent starts on it: the kernel, other
// programs, and conflicts. It changes nothing, and closes the sockets and programs that
// it tries at once. It checks the network namespace of the calling thread.
package preflight

import (
	"fmt"
	"io"
	"net/netip"
	"text/tabwriter"
)

// State is the result of a check.
type State string

// States: as it should be; works, but an operator should know; the agent would not start,
// or not work.
const (
	OK   State = "ok"
	Warn State = "warn"
	Fail State = "fail"
)

// Line is the result of one check, and the remedy.
type Line struct {
	State  State  `json:"state"`
	Check  string `json:"check"`
	Found  string `json:"found"`
	Remedy string `json:"remedy,omitempty"` // "" when State is OK
}

// Config is the part of an agent's configuration that concerns the Node.
type Config struct {
	Gateway, Tunnel string         // names of links
	TunnelPort      uint16         // UDP; 0: a raw socket
	Overhead        int            // bytes of the tunnel's headers
	MTU             int            // of the gateway and the pods
	Underlay        netip.Addr     // the Node's address; not valid: not known
	PodCIDRs        []netip.Prefix // none: not known
	CNIDir          string         // where container runtimes look for networks
	CNIName         string         // our file there
	CNIBin          string         // where they look for plugin programs
}

// Check runs all checks.
func Check(c *Config) []Line {
	var all []Line
	for _, check := range []func(*Config) Line{
		capabilities, kernel, packetSocket, xdpSocket, programs, tcx, tun, nft, expressions, settings, leftovers, networks, foreignLinks, plugins, kubeProxy, openVSwitch,
		firewall, names, overlaps, port, underlayMTU, reversePath, forwarding,
	} {
		all = append(all, check(c))
	}
	return all
}

// Worst is the worst state of some lines.
func Worst(all []Line) State {
	worst := OK
	for _, l := range all {
		if l.State == Fail || l.State == Warn && worst == OK {
			worst = l.State
		}
	}
	return worst
}

// Write writes lines as columns.
func Write(w io.Writer, all []Line) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, l := range all {
		fmt.Fprintf(t, "%s\t%s\t%s\n", l.State, l.Check, l.Found)
		if l.Remedy != "" {
			fmt.Fprintf(t, "\t\t-> %s\n", l.Remedy)
		}
	}
	return t.Flush()
}

func ok(check, format string, args ...any) Line {
	return Line{OK, check, fmt.Sprintf(format, args...), ""}
}
