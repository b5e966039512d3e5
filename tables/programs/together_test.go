package programs

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
	"github.com/antrail/antrail/tables/uplink"
	"github.com/antrail/antrail/tables/vppl3"
	"github.com/antrail/antrail/tables/windows2020"
)

// routedPod is a Node with one pod, at a port of its own.
func routedPod(no uint32) *layout.Node {
	return &layout.Node{Pods: []layout.Pod{layout.NewPod(layout.Port{Name: "routed", No: no, MAC: [6]byte{5: 2}}, netip.MustParseAddr("10.1.1.9"))}}
}

// TestTogether: each further program has its tables behind the others, and every entry of it stays
// among them. It has the packets of its own ports, and the first program all others.
func TestTogether(t *testing.T) {
	for _, first := range []*layout.Program{windows2020.Program, uplink.Program} {
		alone, _, err := first.Flow(first.Sample())
		if err != nil {
			t.Fatal(err)
		}
		both, origins, err := layout.Together(layout.Part{Program: first, Node: first.Sample()}, layout.Part{Program: vppl3.Program, Node: routedPod(20)})
		if err != nil {
			t.Fatal(err)
		}
		base, ok := both.Names.TableID("acl-plugin-in-ip4-fa")
		if !ok || both.First != alone.First || both.Names.Port(20) != "routed" || len(origins) != 2 || len(origins[0]) != len(alone.Entries) {
			t.Fatalf("base %d, %d origins", base, len(origins))
		}
		var dispatched int
		for i, e := range both.Entries {
			switch text := e.Text(flow.Format{}); {
			case i < len(alone.Entries):
				if want := alone.Entries[i].Text(flow.Format{}); text != want || e.Table >= base {
					t.Errorf("%s has become %s", want, text)
				}
			case e.Table == both.First:
				dispatched++
				if want := "in_port=20"; !strings.Contains(text, want) || origins[1][e].Why == "" {
					t.Errorf("%s, for %+v", text, origins[1][e])
				}
			default:
				for _, a := range e.Actions {
					if g, ok := a.(flow.GotoTable); e.Table < base || ok && g.Table < base {
						t.Errorf("%s leaves its program", text)
					}
					if ct, ok := a.(*flow.CT); ok && ct.Table < base {
						t.Errorf("%s leaves its program", text)
					}
				}
			}
		}
		if dispatched != 1 {
			t.Errorf("%d entries send packets to the second program", dispatched)
		}
		if marks := MarkNames(both.Names); len(marks.Programs) != 2 || marks.Programs[0] != first {
			t.Errorf("%d programs have marks", len(marks.Programs))
		}
		for table, want := range map[string]string{"ip4-lookup": "Routing", first.Tables[0].Name: "Classifier", "Mine": ""} {
			if got := Stage(both.Names)(table); got != want {
				t.Errorf("table %s is in stage %q, want %q", table, got, want)
			}
		}
	}
}

// TestNotTogether: programs that would take each other's connections or names are refused.
func TestNotTogether(t *testing.T) {
	for _, c := range []struct {
		first, second *layout.Program
		want          string
	}{
		{windows2020.Program, uplink.Program, "programs windows2020 and uplink both have connections in zone 65520"},
		{vppl3.Program, vppl3.Program, "another program of the switch has a table"},
	} {
		_, _, err := layout.Together(layout.Part{Program: c.first, Node: c.first.Sample()}, layout.Part{Program: c.second, Node: c.second.Sample()})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s beside %s: %v", c.second.Name, c.first.Name, err)
		}
	}
}

// TestBeside: a program beside Antrea's has its tables where none of Antrea's is, and no zone of Antrea's.
func TestBeside(t *testing.T) {
	names := namesOf("PipelineRootClassifier")
	all, origins, err := Beside(0, names, layout.Part{Program: vppl3.Program, Node: routedPod(20)})
	if err != nil || len(origins) != 1 || len(origins[0]) != len(all) || names.Port(20) != "routed" {
		t.Fatalf("%d entries, %d origins, %v", len(all), len(origins), err)
	}
	for _, e := range all {
		if text := e.Text(flow.Format{}); e.Table < firstBeside && (e.Table != 0 || !strings.Contains(text, "priority=65535,in_port=20 actions=goto_table:128")) {
			t.Errorf("%s is among Antrea's", text)
		}
	}
	for _, p := range []*layout.Program{windows2020.Program, uplink.Program} {
		if _, _, err := Beside(0, flow.NewNames(), layout.Part{Program: p, Node: p.Sample()}); err == nil || !strings.Contains(err.Error(), "program "+p.Name+" has connections in zone") {
			t.Errorf("%s: %v", p.Name, err)
		}
	}
}
