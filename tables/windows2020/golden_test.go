package windows2020

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
	"github.com/antrail/antrail/tables/layout"
)

// slips are errors of the document that no program reads: a surplus comma and parenthesis, and a
// hexadecimal number without 0x.
var slips = strings.NewReplacer(",actions=", " actions=", "CT_MARK[])))", "CT_MARK[]))", "load:aabb", "load:0xaabb")

// documentLines are the document's entries, letter by letter.
func documentLines(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("testdata/document.flows")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(lines) != 11 {
		t.Fatalf("the document has %d entries, and 11 are expected", len(lines))
	}
	return lines
}

// literals are the program's entries that the document has.
func literals(t *testing.T, n *layout.Node) (all []*flow.Entry) {
	t.Helper()
	entries, err := build(n)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Literal {
			all = append(all, e.Entry)
		}
	}
	return all
}

// TestDocumentsEntries: the program has the document's entries in the document's order, as
// a dump prints them.
func TestDocumentsEntries(t *testing.T) {
	n := sample()
	names := Program
	prog, _, err := names.Flow(n)
	if err != nil {
		t.Fatal(err)
	}
	values := strings.NewReplacer("$uplink", "uplink", "$local_nodeIP", n.NodeIP.String(), "${nodeIP}", n.NodeIP.String())
	have := literals(t, n)
	for i, line := range documentLines(t) {
		want, err := parse.Program(parse.Sources{Flows: parse.Text("document", slips.Replace(values.Replace(line))), Names: prog.Names})
		if err != nil {
			t.Fatal(err)
		}
		f := flow.Format{Names: prog.Names}
		if i >= len(have) || have[i].Text(f) != want.Entries[0].Text(f) {
			t.Errorf("entry %d is\n%s\nthe document has\n%s", i, have[min(i, len(have)-1)].Text(f), want.Entries[0].Text(f))
		}
	}
	if len(have) != 11 {
		t.Errorf("%d entries, and the document has 11", len(have))
	}
}

// TestDocumentsText: written in the document's own words, entries are its lines letter by
// letter, but for blanks, the order of a match, and slips.
func TestDocumentsText(t *testing.T) {
	n := sample()
	n.Uplink.Name = "$uplink"
	have := literals(t, n)
	for i, line := range documentLines(t) {
		want := inOrder(strings.ReplaceAll(strings.NewReplacer(",actions=", " actions=", "CT_MARK[])))", "CT_MARK[]))").Replace(line), "${nodeIP}", "$local_nodeIP"))
		if got := inOrder(spelled(have[i], n)); got != want {
			t.Errorf("entry %d is\n%s\nthe document has\n%s", i, got, want)
		}
	}
}

// inOrder is a line without blanks, its terms sorted.
func inOrder(line string) string {
	head, actions, _ := strings.Cut(line, "actions=")
	terms := strings.Split(strings.Trim(strings.ReplaceAll(head, " ", ""), ","), ",")
	slices.Sort(terms)
	return strings.Join(terms, ",") + " actions=" + strings.ReplaceAll(actions, " ", "")
}

// spelled is an entry as the document spells it: load for set_field, names of ports.
func spelled(e *flow.Entry, n *layout.Node) string {
	names := Program
	prog, _, _ := names.Flow(n)
	match := strings.ReplaceAll(e.Match.Text(prog.Names), n.NodeIP.String(), "$local_nodeIP")
	match = strings.ReplaceAll(match, `"$uplink"`, "$uplink")
	return fmt.Sprintf("table=%d,priority=%d,%s actions=%s", e.Table, e.Priority, match, spelledActions(e.Actions, n))
}

func spelledActions(actions []flow.Action, n *layout.Node) string {
	var all []string
	for _, a := range actions {
		all = append(all, spelledAction(a, n))
	}
	return strings.Join(all, ",")
}

func spelledAction(a flow.Action, n *layout.Node) string {
	switch a := a.(type) {
	case flow.SetField:
		return spelledLoad(a)
	case flow.Output:
		for _, p := range n.Ports() {
			if p.No == a.Port {
				return "output:" + p.Name
			}
		}
	case *flow.CT:
		if a.Commit {
			return fmt.Sprintf("ct(commit,table=%d,zone=%d,nat(src=$local_nodeIP:%d-%d),exec(%s))", a.Table, a.Zone, a.NAT.PortMin, a.NAT.PortMax, spelledActions(a.Exec, n))
		}
	}
	return flow.ActionsText([]flow.Action{a}, flow.Format{})
}

// spelledLoad is a set_field as a load of the bits that it writes.
func spelledLoad(a flow.SetField) string {
	first, count := 0, 0
	for ; a.Mask.Shr(first).Lo&1 == 0; first++ {
	}
	for ; a.Mask.Shr(first+count).Lo&1 == 1; count++ {
	}
	value := a.Value.Shr(first).Lo
	switch a.Field {
	case flow.EthDst:
		return fmt.Sprintf("load:%x->NXM_OF_ETH_DST[]", value)
	case flow.CTMark:
		return fmt.Sprintf("load:%#x->NXM_NX_CT_MARK[]", value)
	}
	bits := fmt.Sprintf("%d", first)
	if count > 1 {
		bits = fmt.Sprintf("%d..%d", first, first+count-1)
	}
	return fmt.Sprintf("load:%#x->NXM_NX_REG%d[%s]", value, a.Field-flow.Reg0, bits)
}

// TestNoTwoEntriesCompete: no two entries of a table have the same priority and match, and
// every goto leads to a table that is there.
func TestNoTwoEntriesCompete(t *testing.T) {
	prog, origins, err := Program.Flow(sample())
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, e := range prog.Entries {
		key := fmt.Sprint(e.Table, e.Priority, e.Match.Text(nil))
		if seen[key] {
			t.Errorf("twice: %s", key)
		}
		seen[key] = true
		if o := origins[e]; o.Row == "" || o.Why == "" {
			t.Errorf("nobody says what for: %s", e.Text(flow.Format{Names: prog.Names}))
		}
		for _, a := range e.Actions {
			if g, ok := a.(flow.GotoTable); ok && prog.Names.Table(g.Table) == "" {
				t.Errorf("goes to table %d, which is not there: %s", g.Table, key)
			}
		}
	}
}

// TestMissingPorts: a Node that lacks what the entries need is refused, with all that it lacks.
func TestMissingPorts(t *testing.T) {
	_, _, err := Program.Flow(&layout.Node{Peers: sample().Peers})
	if err == nil {
		t.Fatal("a Node without ports is taken")
	}
	for _, want := range []string{"no uplink port", "no bridge port", "no gateway port", "no IPv4 Node IP", "no IPv4 pod range", "no tunnel port"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
	twice := sample()
	twice.Pods[0].Port.No = twice.Gateway.No
	if _, _, err := Program.Flow(twice); err == nil || !strings.Contains(err.Error(), "both have number 2") {
		t.Errorf("two ports of one number: %v", err)
	}
}
