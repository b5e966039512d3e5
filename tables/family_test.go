package tables

import (
	"slices"
	"strings"
	"testing"
)

// TestIPv6 makes the scenario in IPv6 alone.
func TestIPv6(t *testing.T) {
	prog := families{IPv6}.program(families{IPv6}.config())
	got := slices.Sorted(slices.Values(append(lines(t, prog.Entries, prog.Names), groupLines(prog)...)))
	compareText(t, "ipv6.flows", strings.Join(got, "\n")+"\n")
}

// TestDualStack: with both families, a Node has the entries of each, and
// no others.
func TestDualStack(t *testing.T) {
	var want []string
	for _, list := range []families{{IPv4}, {IPv6}} {
		prog := list.program(list.config())
		want = append(want, lines(t, prog.Entries, prog.Names)...)
		want = append(want, groupLines(prog)...)
	}
	slices.Sort(want)
	both := families{IPv4, IPv6}
	prog := both.program(both.config())
	got := append(lines(t, prog.Entries, prog.Names), groupLines(prog)...)
	compareLines(t, slices.Compact(want), got)
}

// TestLinkLocal follows the example of RFC 4291, appendix A: the U/L bit is
// inverted and ff:fe put in the middle.
func TestLinkLocal(t *testing.T) {
	if got := linkLocalOf(mac("34:56:78:9a:bc:de")).String(); got != "fe80::3656:78ff:fe9a:bcde" {
		t.Error(got)
	}
}
