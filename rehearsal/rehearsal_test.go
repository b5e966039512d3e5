package rehearsal_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/conntrack/proto"
	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
	"github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/ports/memory"
	"github.com/antrail/antrail/rehearsal"
)

var portNames = []string{"tun", "pod", "out", "back"} // from 1

// node is a Node whose switch runs entries.
func node(t *testing.T, name, entries string, outer ...netip.Addr) *rehearsal.Node {
	t.Helper()
	names := flow.NewNames()
	for i, port := range portNames {
		names.SetPort(uint32(i+1), port)
	}
	p, err := parse.Program(parse.Sources{Flows: parse.Text(name, entries), Names: names})
	if err != nil {
		t.Fatal(err)
	}
	clock := func() int64 { return 1 }
	ct := conntrack.NewTable(conntrack.Config{Now: clock, Max: 16, Timeouts: proto.DefaultTimeouts()})
	sw, err := dataplane.New(dataplane.Config{Conntrack: ct, Clock: clock, Cache: -1})
	if err != nil {
		t.Fatal(err)
	}
	if err := sw.Apply(flow.BundleOf(p)); err != nil {
		t.Fatal(err)
	}
	n := &rehearsal.Node{Name: name, Switch: sw, Ports: map[uint32]*memory.Port{}, Tunnel: 1, Outer: outer}
	for i, port := range portNames {
		n.Ports[uint32(i+1)] = memory.New(port, memory.Options{Tunnel: i == 0})
		if err := sw.AddPort(uint32(i+1), n.Ports[uint32(i+1)]); err != nil {
			t.Fatal(err)
		}
	}
	if err := n.Watch(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		n.Unwatch()
		if err := sw.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// TestSend: a frame goes on at the other end of the tunnel, whichever of its addresses
// is meant, and along a wire; what leads to nobody leaves, and a circle ends.
func TestSend(t *testing.T) {
	a, b, egress := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("192.0.2.9")
	for _, c := range []struct {
		name, onA, onB string
		wires          map[string]string
		want           string // hops, wires, ports that it left by, with Nodes
		fails          string
	}{
		{"tunnel", "in_port=pod actions=set_field:192.0.2.2->tun_dst,output:tun", "in_port=tun,tun_src=192.0.2.1 actions=output:pod", nil, "a b; ; b pod", ""},
		{"of an Egress", "in_port=pod actions=set_field:192.0.2.9->tun_dst,output:tun", "in_port=tun,tun_dst=192.0.2.9 actions=output:out", nil, "a b; ; b out", ""},
		{"to nobody", "in_port=pod actions=set_field:192.0.2.7->tun_dst,output:tun", "actions=output:pod", nil, "a; ; a tun", ""},
		{"wire", "in_port=pod actions=output:out\nin_port=back actions=set_field:0x7->pkt_mark,output:pod", "actions=drop", map[string]string{"out": "back"}, "a a; out; a pod", ""},
		{"two ports", "in_port=pod actions=output:out,output:back", "actions=drop", nil, "a; ; a out,a back", ""},
		{"dropped", "in_port=pod actions=drop", "actions=drop", nil, "a; ; ", ""},
		{"circle", "actions=output:out", "actions=drop", map[string]string{"out": "back"}, "", "goes in circles"},
	} {
		t.Run(c.name, func(t *testing.T) {
			nodes := rehearsal.Nodes{All: []*rehearsal.Node{node(t, "a", c.onA, a), node(t, "b", c.onB, b, egress)}, Wires: c.wires}
			way, err := nodes.Send(nodes.All[0], 2, packettest.TCP4(packettest.Options{Src: a, Dst: b, SrcPort: 1, DstPort: 2}))
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) {
					t.Errorf("%v, want %q", err, c.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var hops, left []string
			for _, h := range way.Hops {
				hops = append(hops, h.Node)
			}
			for _, l := range way.Left {
				left = append(left, l.Node+" "+l.Port)
			}
			got := strings.Join(hops, " ") + "; " + strings.Join(way.Via, " ") + "; " + strings.Join(left, ",")
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
			if c.name == "wire" && way.Left[0].Mark != 7 {
				t.Errorf("its mark is %d", way.Left[0].Mark)
			}
		})
	}
	nodes := rehearsal.Nodes{All: []*rehearsal.Node{node(t, "a", "actions=drop", a)}}
	if _, err := nodes.Send(nodes.All[0], 99, nil); err == nil {
		t.Errorf("a port that is not there: %v", err)
	}
}
