package tables

import (
	"net/netip"
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

// TestTunnelEnd: pods of a family go between Nodes by addresses of that family,
// when the tunnel has them.
func TestTunnelEnd(t *testing.T) {
	both := families{IPv4, IPv6}
	peer := Peer{NodeIPs: both.ips("192.168.77.103")}
	for _, s := range []struct {
		transport families
		of        Family
		want      netip.Addr
	}{
		{nil, IPv4, IPv4.addr("192.168.77.103")},
		{nil, IPv6, IPv6.addr("192.168.77.103")},
		{families{IPv4}, IPv6, IPv4.addr("192.168.77.103")},
		{families{IPv6}, IPv4, IPv6.addr("192.168.77.103")},
		{both, IPv6, IPv6.addr("192.168.77.103")},
	} {
		c := both.config()
		c.TransportIPs = s.transport.ips("192.168.77.102")
		if got, ok := New(c).tunnelEnd(peer, s.of); !ok || got != s.want {
			t.Errorf("transport %v, family %v: %v, %t, want %v", s.transport, s.of, got, ok, s.want)
		}
	}
	c := both.config()
	c.TransportIPs = families{IPv6}.ips("192.168.77.102")
	if New(c).Reaches(Peer{NodeIPs: families{IPv4}.ips("192.168.77.103")}) || !New(c).Reaches(peer) {
		t.Error("a tunnel over IPv6 reaches a Node without IPv6, or none")
	}
}

// TestLinkLocal follows the example of RFC 4291, appendix A: the U/L bit is
// inverted and ff:fe put in the middle.
func TestLinkLocal(t *testing.T) {
	if got := linkLocalOf(mac("34:56:78:9a:bc:de")).String(); got != "fe80::3656:78ff:fe9a:bcde" {
		t.Error(got)
	}
}
