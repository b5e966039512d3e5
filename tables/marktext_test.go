package tables

import (
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
	"github.com/antrail/antrail/tables/layout"
)

// testNames are a pipeline's names with two of the tables where unions differ.
func testNames() *flow.Names {
	n := flow.NewNames()
	n.SetTable(0, "PipelineRootClassifier")
	n.SetTable(2, "ARPResponder")
	n.SetTable(12, "ServiceLB")
	n.SetTable(26, "AntreaPolicyIngressRule")
	n.SetTable(40, "Mine")
	n.SetPort(38, "db-a")
	return n
}

// TestMarksOfMatches: a match shows marks by their names, and ports and addresses as text.
func TestMarksOfMatches(t *testing.T) {
	names := testNames()
	for _, c := range []struct {
		table uint8
		match string
		want  string
	}{
		{12, "tcp,reg4=0x10000/0x70000,nw_dst=10.105.31.235,tp_dst=80", "EpToSelectRegMark"},
		{12, "reg0=0x200006/0x60000f", "FromTCReturnRegMark, OutputToOFPortRegMark"},
		{12, "reg0=0/0x200", "NotRewriteMACRegMark"},
		{12, "tcp,reg3=0xa0a0106,reg4=0x20050/0x7ffff", "EndpointIPField=10.10.1.6, EpUnionField=EpSelectedRegMark:80"},
		{12, "reg1=0x26", "TargetOFPortField=db-a"},
		{12, "reg2=26/0xff", "PacketInTableField=AntreaPolicyIngressRule"},
		{2, "reg2=7", "SwapField=7"},
		{26, "reg0=0x400/0x400,reg3=0x7", "APDenyRegMark, APConjIDField=7"},
		{12, "ct_mark=0x12/0x1f", "FromGatewayCTMark, ServiceCTMark"},
		{12, "ct_label=0x300000000/0xffffffff00000000", "EgressRuleCTLabel=3"},
		{12, "pkt_mark=0x80000000/0x80000000", "HostLocalSourceMark"},
		{12, "ip,nw_dst=10.10.0.1", ""},
		{40, "reg0=3/0xf", ""},
		{99, "reg0=3/0xf", ""},
	} {
		m, err := parse.Match(c.match, names)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join((layout.MarkNames{Names: names, Programs: []*layout.Program{Program}}).Match(c.table, m.Mini()), ", "); got != c.want {
			t.Errorf("table %d, %s: %q, want %q", c.table, c.match, got, c.want)
		}
	}
}

// TestMarksOfActions: actions show what they write, also into a connection, and what they copy
// there.
func TestMarksOfActions(t *testing.T) {
	names := testNames()
	actions, err := parse.Actions("set_field:0x200/0x200->reg0,set_field:0x20000/0x70000->reg4,load:0x26->NXM_NX_REG1[],dec_ttl,"+
		"ct(commit,table=12,zone=65520,exec(set_field:0x10/0x10->ct_mark,move:NXM_NX_REG0[0..3]->NXM_NX_CT_MARK[0..3]))", names)
	if err != nil {
		t.Fatal(err)
	}
	got := (layout.MarkNames{Names: names, Programs: []*layout.Program{Program}}).Sets(12, actions)
	want := []string{"RewriteMACRegMark", "EpSelectedRegMark", "TargetOFPortField=db-a", "ServiceCTMark", "ConnSourceCTMarkField"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestMarksOfChanges: only changes are shown, those of a field's part by the part, those of all
// of it as a whole.
func TestMarksOfChanges(t *testing.T) {
	names := testNames()
	for _, c := range []struct {
		table         uint8
		field         flow.FieldID
		before, after uint64
		want          string
	}{
		{12, flow.Reg0, 0, 3, "FromPodRegMark"},
		{12, flow.Reg0, 3, 0x203, "RewriteMACRegMark"},
		{12, flow.Reg0, 0x213, 0x200003, "PktDestinationField=0, NotRewriteMACRegMark, OutputToOFPortRegMark"},
		{12, flow.Reg0 + 4, 0x14020000, 0x14020050, "EndpointPortField=80"},
		{12, flow.Reg0 + 4, 0x10000, 0x20050, "EpUnionField=EpSelectedRegMark:80"},
		{12, flow.Reg0 + 3, 0, 0x0a0a0018, "EndpointIPField=10.10.0.24"},
		{26, flow.Reg0 + 3, 0, 5, "APConjIDField=5"},
		{2, flow.Reg0 + 2, 0, 0x100, "SwapField=256"},
		{12, flow.Reg0 + 1, 0, 1, "TargetOFPortField=1"},
		{12, flow.Reg0 + 11, 0, 1, ""},
	} {
		got := strings.Join((layout.MarkNames{Names: names, Programs: []*layout.Program{Program}}).Change(c.table, c.field, flow.Value{Lo: c.before}, flow.Value{Lo: c.after}), ", ")
		if got != c.want {
			t.Errorf("table %d, field %d from %#x to %#x: %q, want %q", c.table, c.field, c.before, c.after, got, c.want)
		}
	}
}

// TestMarksOfConnections: a connection shows its source, its translations, and the rules that
// allowed it.
func TestMarksOfConnections(t *testing.T) {
	got := (layout.MarkNames{Names: testNames(), Programs: []*layout.Program{Program}}).Conn(0x33, flow.Value{Lo: 0x300000002})
	want := []string{"ConnSourceCTMarkField=FromPodRegMark", "ServiceCTMark", "ConnSNATCTMark", "IngressRuleCTLabel=2", "EgressRuleCTLabel=3"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := (layout.MarkNames{Names: testNames(), Programs: []*layout.Program{Program}}).Conn(0, flow.Value{}); got != nil {
		t.Errorf("no mark is %q", got)
	}
	if got := (layout.MarkNames{Names: flow.NewNames(), Programs: []*layout.Program{Program}}).Conn(0x33, flow.Value{}); got != nil {
		t.Errorf("of another pipeline's connection: %q", got)
	}
}

// TestUnionsAreMeant: of fields that share bits without being parts of one another, exactly one
// applies in each table.
func TestUnionsAreMeant(t *testing.T) {
	for _, f := range Fields() {
		for _, g := range Fields() {
			if f.Union == "" || f.Union != g.Union || f.Name == g.Name || layout.Contains(f.Subfield, g.Subfield) || layout.Contains(g.Subfield, f.Subfield) || !overlap(f, g) {
				continue
			}
			for _, table := range TableNames() {
				if Program.Marks.Meant(f, table) == Program.Marks.Meant(g, table) {
					t.Errorf("%s: %s or %s?", table, f.Name, g.Name)
				}
			}
		}
	}
}
