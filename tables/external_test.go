package tables

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/flow"
)

// externalConfig is an external Node with traffic that no policy decides on.
func externalConfig() Config {
	c := goldenConfig()
	c.Features.ExternalNode = true
	ten := netip.MustParsePrefix("10.0.0.0/8")
	c.Bypasses = []Bypass{
		{Direction: Ingress, Proto: 6, Peer: netip.MustParsePrefix("1.1.1.1/32"), Port: 22},
		{Direction: Egress, Proto: 17, Peer: ten, Port: 53}, {Direction: Ingress, Proto: 1, Peer: ten}, {Direction: Egress, Peer: ten},
	}
	return c
}

// TestExternalNode makes the entries of an external Node with one card. It compares them with
// those of Antrea v1.15.2's code (testdata/golden/external). Antrea's dump was taken before it
// reads DNS, whose two entries are those of any Node.
func TestExternalNode(t *testing.T) {
	p := New(externalConfig())
	all := append(p.Static(), p.ExternalLink(ExternalLink{Host: Port{No: 20}, Uplink: Port{No: 21}})...)
	got := slices.DeleteFunc(lines(t, all, p.Names()), func(l string) bool { return strings.Contains(l, "actions=conjunction(1,") })
	compareLines(t, goldenLines(t, "external/*.flows"), got)
	if len(all) != len(got)+2 {
		t.Errorf("%d entries of DNS, want 2", len(all)-len(got))
	}
}

// TestExternalNodeAlone: no other object has entries on an external Node.
func TestExternalNodeAlone(t *testing.T) {
	p := New(externalConfig())
	all := slices.Concat(p.Traceflow(7), p.Endpoint(Endpoint{Proto: 6, Addr: netip.MustParseAddrPort("10.0.0.1:80")}),
		p.PodEgress(client, EgressIP{Addr: netip.MustParseAddr("10.0.0.1"), Mark: 1}), p.ReturnPort(tap0))
	if len(all) != 0 || len(p.StaticGroups()) != 4 {
		t.Errorf("%d entries, %d groups", len(all), len(p.StaticGroups()))
	}
	if _, ok := p.Names().TableID("NonIP"); !ok {
		t.Error("there is no table NonIP")
	}
}

// TestExternalAnswer: on an external Node, the answer to a rejected packet goes back to its port.
func TestExternalAnswer(t *testing.T) {
	p := New(externalConfig())
	from, actions := Answer(&flow.Key{}, 21, p.Names())
	if from != 21 || len(actions) != 2 || actions[1] != (flow.OutputInPort{}) {
		t.Errorf("from %d: %v", from, actions)
	}
}
