package uplink

import (
	"flag"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

var update = flag.Bool("update", false, "write the goldens")

// routerMAC is the Node's next hop on the card.
var routerMAC = [6]byte{0x02, 0x00, 0x5e, 0x00, 0x00, 0x01}

// directSample is the sample with a next hop.
func directSample() *layout.Node {
	n := sample()
	n.Router = routerMAC
	return n
}

// sharedSample is the direct sample whose card stays the kernel's.
func sharedSample() *layout.Node {
	n := directSample()
	n.Bridge = layout.Port{}
	return n
}

// policySample has a pod that may send to one port of the outside, and one that takes one port of
// other pods.
func policySample() *layout.Node {
	n := directSample()
	n.Policies = []layout.Policy{
		{Pod: n.Pods[0].IP(), Egress: &[]layout.Rule{{Proto: 6, Port: 443, Other: netip.MustParsePrefix("198.51.100.0/24")}, {Proto: 6, Port: 8080, Other: n.PodCIDR}}},
		{Pod: n.Pods[1].IP(), Ingress: &[]layout.Rule{{Proto: 6, Port: 8080, Other: n.PodCIDR}}},
	}
	return n
}

// modes are the two ways to the outside, with a card that is the switch's.
var modes = map[string]func() *layout.Node{"loop": sample, "direct": directSample}

// allModes are modes, a card that stays the kernel's, and pods with rules.
func allModes() map[string]func() *layout.Node {
	all := maps.Clone(modes)
	all["shared"], all["policies"] = sharedSample, policySample
	return all
}

// TestDump: the entries of all modes are the golden dumps.
func TestDump(t *testing.T) {
	for mode, node := range allModes() {
		prog, _, err := Program.Flow(node())
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		for _, e := range prog.Entries {
			b.WriteString(e.Text(flow.Format{Names: prog.Names}) + "\n")
		}
		file := "testdata/" + mode + ".flows"
		if *update {
			if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(file); err != nil || b.String() != string(want) {
			t.Errorf("%s mode (%v): the dump is\n%s", mode, err, &b)
		}
	}
}

// TestNoTwoEntriesCompete: no two entries of a table have the same priority and match, and
// every goto leads to a table that is there.
func TestNoTwoEntriesCompete(t *testing.T) {
	for mode, node := range allModes() {
		prog, origins, err := Program.Flow(node())
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, e := range prog.Entries {
			key := fmt.Sprint(e.Table, e.Priority, e.Match.Text(nil))
			if seen[key] {
				t.Errorf("%s: twice: %s", mode, key)
			}
			seen[key] = true
			if o := origins[e]; o.Row == "" || o.Why == "" {
				t.Errorf("%s: nobody says what for: %s", mode, key)
			}
			for _, a := range e.Actions {
				if g, ok := a.(flow.GotoTable); ok && (prog.Names.Table(g.Table) == "" || g.Table <= e.Table) {
					t.Errorf("%s: goes to table %d: %s", mode, g.Table, key)
				}
			}
		}
	}
}

// TestMarksOfV115: no mark has the value by which Antrea v1.15 means something else. 0x20 says
// there that SNAT is due, and 0x40 that the packet goes back to where it came from.
func TestMarksOfV115(t *testing.T) {
	prog, _, err := Program.Flow(sample())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range prog.Entries {
		for _, a := range e.Actions {
			ct, ok := a.(*flow.CT)
			if !ok {
				continue
			}
			for _, x := range ct.Exec {
				if set := x.(flow.SetField); set.Field == flow.CTMark && set.Mask.Lo&(0x20|0x40|0x80) != 0 {
					t.Errorf("writes bits %#x of ct_mark: %s", set.Mask.Lo, e.Text(flow.Format{Names: prog.Names}))
				}
			}
		}
	}
}

// TestMissing: a Node that lacks what the entries need is refused, with all that it lacks.
func TestMissing(t *testing.T) {
	_, _, err := Program.Flow(&layout.Node{Peers: sample().Peers, Router: routerMAC})
	if err == nil {
		t.Fatal("a Node without ports is taken")
	}
	for _, want := range []string{
		"no uplink port", "no gateway port", "no IPv4 Node IP", "no IPv4 pod range", "no IPv4 gateway IP",
		"no MAC address of the gateway", "no tunnel port", "no MAC address of the uplink port",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}
